"""Mail, into real folders and through a real mail server on loopback."""

import email
import email.policy
import os
import socket
import threading
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP as Server
from aiosmtpd.smtp import AuthResult, Envelope, Session

from toolplan.errors import ToolFailed, UsageError
from toolplan.toolkits import SmtpServer, mail
from toolplan.toolkits.mail import Receipt
from toolplan.tools import Tool, ToolContext, ToolSet


def tool_for(**where: Any) -> Tool:
    return ToolSet.of(mail(sender="assistant@example.com", **where))["send_email"]


def sender_of(**where: Any) -> Callable[..., Any]:
    """A function that calls the tool as the engine does, with a context that the caller does not see."""
    tool = tool_for(**where)
    return lambda **arguments: tool.bind(arguments)()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def messages_in(folder: Path) -> list[EmailMessage]:
    found = []
    for name in sorted(os.listdir(folder)):
        assert name.endswith(".eml"), name
        message = email.message_from_bytes((folder / name).read_bytes(), policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        found.append(message)
    return found


def test_a_message_in_the_outbox_is_whole_and_readable(tmp_path: Path) -> None:
    body = "当前温度-3.2度，天气晴。\n{braces} <b>stay</b>\n.\nFrom here on"
    receipt = sender_of(outbox=tmp_path / "outbox")(to="me@example.com", subject="低温预警 ❄", body=body)
    [message] = messages_in(tmp_path / "outbox")
    assert message["From"] == "assistant@example.com"
    assert message["To"] == "me@example.com"
    assert message["Subject"] == "低温预警 ❄"
    assert message.get_content().rstrip("\n") == body
    assert message["Date"].datetime.tzinfo is not None
    assert receipt == Receipt(message["Message-ID"], "in outbox", ["me@example.com"], "低温预警 ❄")


def test_several_recipients_get_one_message(tmp_path: Path) -> None:
    receipt = sender_of(outbox=tmp_path)(to=["a@x.org", " b@x.org ", "a@x.org"], subject="Hi", body="-")
    [message] = messages_in(tmp_path)
    assert [address.addr_spec for address in message["To"].addresses] == ["a@x.org", "b@x.org"]
    assert receipt.to == ["a@x.org", "b@x.org"]


def test_one_idempotency_key_writes_one_message(tmp_path: Path) -> None:
    send = tool_for(outbox=tmp_path)
    arguments = {"to": "a@x.org", "subject": "Hi", "body": "-"}
    receipts = [send.bind(arguments, ToolContext(idempotency_key="run/s1"))() for _ in range(3)]
    assert receipts[0] == receipts[1] == receipts[2]
    send.bind(arguments, ToolContext(idempotency_key="run/s2"))()
    send.bind(arguments)()
    send.bind(arguments)()
    assert len(messages_in(tmp_path)) == 4
    assert send.idempotent


def test_many_threads_leave_only_whole_messages(tmp_path: Path) -> None:
    send = sender_of(outbox=tmp_path)
    threads = [
        threading.Thread(target=send, kwargs={"to": f"p{n}@x.org", "subject": str(n), "body": "x" * 10_000})
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(message.get_content().strip()) for message in messages_in(tmp_path)} == {10_000}
    assert len(messages_in(tmp_path)) == 16


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "@x.org",
        "a@",
        "a@x.org, b@x.org",
        "Ann <a@x.org>",
        "a@x.org\nBcc: evil@x.org",
        "a@x.org\r\n",
        "ä@x.org",
        "a b@x.org",
    ],
)
def test_an_address_that_is_not_plain_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ToolFailed, match="is no mail address") as failure:
        sender_of(outbox=tmp_path)(to=address, subject="Hi", body="-")
    assert failure.value.effect_happened is False
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("subject", ["Hi\nBcc: evil@x.org", "Hi\r\n\r\nbody", "Hi\0", "Hi\u2028there"])
def test_a_subject_cannot_smuggle_headers(tmp_path: Path, subject: str) -> None:
    with pytest.raises(ToolFailed, match="subject must be one line"):
        sender_of(outbox=tmp_path)(to="a@x.org", subject=subject, body="-")
    assert os.listdir(tmp_path) == []


def test_headers_in_a_body_stay_in_the_body(tmp_path: Path) -> None:
    sender_of(outbox=tmp_path)(to="a@x.org", subject="Hi", body="Bcc: evil@x.org\n\nSubject: other")
    [message] = messages_in(tmp_path)
    assert message["Bcc"] is None
    assert message["Subject"] == "Hi"


def test_what_cannot_be_written_is_refused_whole(tmp_path: Path) -> None:
    send = sender_of(outbox=tmp_path / "outbox")
    with pytest.raises(ToolFailed, match="at least one recipient"):
        send(to=[], subject="Hi", body="-")
    with pytest.raises(ToolFailed, match="cannot be written"):
        send(to="a@x.org", subject="Hi", body="\ud800")
    (tmp_path / "outbox").write_text("a file where a folder should be")
    with pytest.raises(ToolFailed, match="outbox cannot be written"):
        send(to="a@x.org", subject="Hi", body="-")


def test_an_international_domain_is_sent_in_its_ascii_form(tmp_path: Path) -> None:
    assert sender_of(outbox=tmp_path)(to="info@bücher.example", subject="Hi", body="-").to == [
        "info@xn--bcher-kva.example"
    ]


class Inbox:
    """Keeps what arrives; refuses what the test wants refused."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.refused: set[str] = set()
        self.data_reply = "250 OK"

    async def handle_RCPT(
        self, server: Server, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Server, session: Session, envelope: Envelope) -> str:
        if self.data_reply == "drop":
            assert server.transport is not None
            server.transport.close()
            return ""
        if self.data_reply.startswith("250"):
            self.envelopes.append(envelope)
        return self.data_reply


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def server(inbox: Inbox) -> Iterator[str]:
    controller = Controller(inbox, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield f"127.0.0.1:{controller.port}"
    controller.stop()


def test_a_mail_server_gets_the_message(server: str, inbox: Inbox) -> None:
    receipt = sender_of(smtp=server)(to=["a@x.org", "b@x.org"], subject="项目启动", body="周五10点\n.\n完")
    [envelope] = inbox.envelopes
    assert envelope.mail_from == "assistant@example.com"
    assert envelope.rcpt_tos == ["a@x.org", "b@x.org"]
    message = email.message_from_bytes(bytes(envelope.content or b""), policy=email.policy.default)
    assert message["Subject"] == "项目启动"
    assert isinstance(message, EmailMessage)
    assert message.get_content().splitlines() == ["周五10点", ".", "完"]
    assert receipt == Receipt(message["Message-ID"], "sent", ["a@x.org", "b@x.org"], "项目启动", [])


def test_recipients_that_the_server_refuses_are_told(server: str, inbox: Inbox) -> None:
    inbox.refused = {"b@x.org"}
    receipt = sender_of(smtp=server)(to=["a@x.org", "b@x.org"], subject="Hi", body="-")
    assert (receipt.to, receipt.refused) == (["a@x.org"], ["b@x.org"])
    inbox.refused = {"a@x.org", "b@x.org"}
    with pytest.raises(ToolFailed, match=r"refused every recipient.*550 no such mailbox") as failure:
        sender_of(smtp=server)(to=["a@x.org", "b@x.org"], subject="Hi", body="-")
    assert failure.value.effect_happened is False
    assert len(inbox.envelopes) == 1


def test_a_refused_message_was_not_sent(server: str, inbox: Inbox) -> None:
    inbox.data_reply = "554 looks like spam"
    with pytest.raises(ToolFailed, match="554 looks like spam") as failure:
        sender_of(smtp=server)(to="a@x.org", subject="Hi", body="-")
    assert failure.value.effect_happened is False


def test_a_connection_lost_while_sending_leaves_it_unknown(server: str, inbox: Inbox) -> None:
    inbox.data_reply = "drop"
    with pytest.raises(ToolFailed, match="connection was lost") as failure:
        sender_of(smtp=server)(to="a@x.org", subject="Hi", body="-")
    assert failure.value.effect_happened is None


def test_a_server_that_is_not_there_has_sent_nothing(server: str) -> None:
    nobody = SmtpServer("127.0.0.1", 1, timeout_seconds=2)
    with pytest.raises(ToolFailed, match=r"127\.0\.0\.1:1 cannot be used") as failure:
        sender_of(smtp=nobody)(to="a@x.org", subject="Hi", body="-")
    assert failure.value.effect_happened is False
    host, port = server.split(":")
    with pytest.raises(ToolFailed, match="cannot be used"):  # this server offers no encryption
        sender_of(smtp=SmtpServer(host, int(port), security="starttls"))(to="a@x.org", subject="Hi", body="-")


def test_logging_in(inbox: Inbox) -> None:
    def authenticate(server: Server, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
        right = getattr(data, "login", b"") == b"me" and getattr(data, "password", b"") == b"right"
        return AuthResult(success=right, handled=False)

    port = free_port()
    controller = Controller(inbox, hostname="127.0.0.1", port=port, authenticator=authenticate, auth_require_tls=False)
    controller.start()
    try:
        login = SmtpServer("127.0.0.1", port, user="me", password="right")
        assert "right" not in repr(login)
        assert sender_of(smtp=login)(to="a@x.org", subject="Hi", body="-").status == "sent"
        with pytest.raises(ToolFailed, match="cannot be used") as failure:
            sender_of(smtp=SmtpServer("127.0.0.1", port, user="me", password="wrong"))(
                to="a@x.org", subject="Hi", body="-"
            )
        assert failure.value.effect_happened is False
    finally:
        controller.stop()


def test_definitions_that_cannot_work_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="either to a folder or to a server"):
        mail(sender="a@x.org")
    with pytest.raises(UsageError, match="either to a folder or to a server"):
        mail(sender="a@x.org", outbox=tmp_path, smtp="localhost")
    with pytest.raises(UsageError, match="sender cannot be used"):
        mail(sender="nobody", outbox=tmp_path)
    with pytest.raises(UsageError, match="is no mail server"):
        mail(sender="a@x.org", smtp="localhost:smtp")


def test_mail_asks_first_and_locks_each_mailbox(tmp_path: Path) -> None:
    assert tool_for(outbox=tmp_path).approval == "ask"
    send = tool_for(outbox=tmp_path, approval="allow")
    assert send.approval == "allow"
    accesses = send.effects.accesses({"to": ["a@x.org", "b@x.org"]})
    assert [(access.resource, access.write) for access in accesses] == [
        (("mailbox", "a@x.org"), True), (("mailbox", "b@x.org"), True)
    ]  # fmt: skip
    assert not tool_for(smtp="localhost").idempotent
