"""Mail: real messages, written into an outbox folder or handed to a mail server.

The outbox holds one `.eml` file a message, which any mail program opens. A message appears there whole or not at all,
and once for each idempotency key: it is written under another name first and then linked to its own (as Maildir
does), which fails if the name is taken.
"""

from __future__ import annotations

import contextlib
import email.errors
import email.policy
import email.utils
import hashlib
import os
import smtplib
import ssl
import tempfile
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from pathlib import Path
from typing import Literal

from toolplan.errors import ToolFailed, UsageError
from toolplan.tools import Tool, ToolContext, ToolSet, tool

__all__ = ["Receipt", "SmtpServer", "mail"]

_LONGEST_LINE = 998
"""Bytes that a line of a message may have (RFC 5322)."""


@dataclass(frozen=True)
class Receipt:
    """What became of a message. `refused` are the recipients that the mail server did not take."""

    id: str
    status: Literal["sent", "in outbox"]
    to: list[str]
    subject: str
    refused: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class SmtpServer:
    """A mail server and how to talk to it."""

    host: str
    port: int = 25
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    security: Literal["none", "starttls", "tls"] = "none"
    timeout_seconds: float = 30.0


def mail(
    *,
    sender: str,
    outbox: str | Path | None = None,
    smtp: SmtpServer | str | None = None,
    approval: Literal["allow", "ask", "deny"] = "ask",
) -> list[Tool]:
    """Return the tool `send_email`, which writes into the folder `outbox` or sends through the server `smtp`.

    `smtp` may be written "host:port". Mail goes out in the user's name, so a person is asked first unless `approval`
    says otherwise. Writing to the outbox is safe to repeat; sending is not. Raises `UsageError` for a `sender` that is
    no address, and unless exactly one of `outbox` and `smtp` is given.
    """
    if (outbox is None) == (smtp is None):
        raise UsageError("mail goes either to a folder or to a server; write mail(sender=..., outbox='outbox')")
    try:
        from_address = _address(sender)
    except ToolFailed as error:
        raise UsageError(f"the sender cannot be used: {error}") from None
    folder = None if outbox is None else Path(outbox)
    server = _server(smtp) if isinstance(smtp, str) else smtp

    @tool(writes="mailbox:{to}", approval=approval, guarded="to", idempotent=folder is not None)
    def send_email(  # noqa: D417 - the docstring is for the model, which does not see `ctx`
        ctx: ToolContext, to: str | list[str], subject: str, body: str
    ) -> Receipt:
        """Sends one mail to one or several recipients.

        Args:
            to: Plain mail address such as "ann@example.org", or a list of them.
            subject: The subject.
            body: Plain text.
        """
        recipients = list(dict.fromkeys(_address(one) for one in ([to] if isinstance(to, str) else to)))
        key = ctx.idempotency_key or uuid.uuid4().hex
        message = _message(from_address, recipients, subject, body, key, on_disk=folder is not None)
        if folder is not None:
            _write(message, folder, key)
            return Receipt(message["Message-ID"], "in outbox", recipients, subject)
        assert server is not None
        refused = _send(message, from_address, recipients, server)
        return Receipt(message["Message-ID"], "sent", [r for r in recipients if r not in refused], subject, refused)

    return list(ToolSet.of([send_email]))


def _message(sender: str, recipients: list[str], subject: str, body: str, key: str, *, on_disk: bool) -> EmailMessage:
    """Return the message: for a file readable as it is and with its system's line ends, else as servers want it."""
    if not recipients:
        raise ToolFailed("a mail needs at least one recipient", effect_happened=False)
    if any(not character.isprintable() for character in subject):
        raise ToolFailed("the subject must be one line without control characters", effect_happened=False)
    message = EmailMessage(policy=email.policy.default if on_disk else email.policy.SMTP)
    try:
        message["From"] = sender
        message["To"] = ", ".join(recipients)
        message["Subject"] = subject
        message["Date"] = email.utils.localtime()
        message["Message-ID"] = f"<{_digest(key)}@{sender.rpartition('@')[2]}>"
        fits_as_it_is = max(len(line.encode()) for line in body.split("\n")) <= _LONGEST_LINE
        message.set_content(body, cte="8bit" if on_disk and fits_as_it_is else None)
    except ValueError as error:  # UnicodeError is one
        raise ToolFailed(f"the mail cannot be written: {error}", effect_happened=False) from error
    return message


def _address(text: str) -> str:
    """Return a plain address in the form that goes on the wire: an international domain in its ASCII form."""
    try:
        parts = Address(addr_spec=text.strip() if text.isprintable() else "")
        domain = parts.domain.encode("idna").decode("ascii")
        if not parts.username.isascii():
            raise ValueError
        address = Address(username=parts.username, domain=domain).addr_spec
    except (ValueError, IndexError, email.errors.HeaderParseError):
        address = ""
    if not all(address.partition("@")[::2]):
        message = f"{text!r} is no mail address; write a plain one such as ann@example.org, several as a list"
        raise ToolFailed(message, effect_happened=False)
    return address


def _write(message: EmailMessage, folder: Path, key: str) -> None:
    """Put the message into the folder, whole, unless it is there already."""
    target = folder / f"{_digest(key)}.eml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(message.as_bytes())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(name, target)
        finally:
            os.unlink(name)
    except OSError as error:
        raise ToolFailed(f"the outbox cannot be written: {error}", effect_happened=target.exists()) from error


def _send(message: EmailMessage, sender: str, recipients: list[str], server: SmtpServer) -> list[str]:
    """Return the recipients that the server refused. Says whether a failure can have sent the mail all the same."""
    with _connected(server) as connection:
        try:
            return list(connection.send_message(message, sender, recipients))
        except smtplib.SMTPRecipientsRefused as error:
            reasons = "; ".join(f"{who}: {_reason(code, text)}" for who, (code, text) in error.recipients.items())
            raise ToolFailed(f"the mail server refused every recipient ({reasons})", effect_happened=False) from error
        except smtplib.SMTPResponseException as error:
            reason = _reason(error.smtp_code, error.smtp_error)
            raise ToolFailed(f"the mail server refused the mail: {reason}", effect_happened=False) from error
        except (smtplib.SMTPException, OSError) as error:
            raise ToolFailed(f"the connection was lost while the mail was sent: {error}") from error


@contextlib.contextmanager
def _connected(server: SmtpServer) -> Generator[smtplib.SMTP]:
    """Give a connection that is ready to send. Whatever goes wrong before that has sent nothing."""
    where = f"{server.host}:{server.port}"
    connection: smtplib.SMTP | None = None
    try:
        if server.security == "tls":
            context = ssl.create_default_context()
            connection = smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout_seconds, context=context)
        else:
            connection = smtplib.SMTP(server.host, server.port, timeout=server.timeout_seconds)
        if server.security == "starttls":
            connection.starttls(context=ssl.create_default_context())
        if server.user is not None:
            connection.login(server.user, server.password or "")
    except (smtplib.SMTPException, OSError) as error:
        if connection is not None:
            connection.close()
        raise ToolFailed(f"the mail server {where} cannot be used: {error}", effect_happened=False) from error
    try:
        yield connection
    finally:
        with contextlib.suppress(smtplib.SMTPException, OSError):
            connection.quit()
        connection.close()


def _reason(code: int, text: bytes | str) -> str:
    return f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def _server(text: str) -> SmtpServer:
    host, _, port = text.rpartition(":")
    if not host:
        return SmtpServer(text)
    if not port.isdecimal():
        raise UsageError(f"`{text}` is no mail server; write 'host:port', or SmtpServer(host, port, user, ...)")
    return SmtpServer(host, int(port))
