"""Wrong command lines, in words that say what to write instead."""

from __future__ import annotations

from cyclopts import CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnknownCommandError, UnusedCliTokensError

from toolplan.diagnostics import nearest

__all__ = ["usage_message"]

_EXAMPLES = {
    "--tools": "name a Python file or a module with tools, as in `--tools tools.py`",
    "REQUEST": "say what you want done, in quotes",
    "PLAN": "give a file with a plan, or `-` for standard input",
}


def usage_message(error: CycloptsError) -> str:
    """Return what is wrong with the command line, and where its help is."""
    command = " ".join(error.command_chain or ())
    advice = f"see `toolplan {command} --help`" if command else "see `toolplan --help`"
    return f"{_problem(error)}; {advice}"


def _problem(error: CycloptsError) -> str:
    match error:
        case UnknownCommandError(unused_tokens=[token, *_]):
            return f"there is no command `{token}`" + _near(token, error)
        case MissingArgumentError(argument=argument) if argument is not None:
            names = [name for name in argument.names if name.startswith("--")]
            name = names[0] if names else argument.name
            if error.keyword is None and not argument.tokens:
                example = _EXAMPLES.get(name)
                if near := nearest(name, (token for token in error.unused_tokens or () if token.startswith("--"))):
                    return f"there is no option `{near}`; did you mean `{name}`?"
                return f"`{name}` is missing" + (f": {example}" if example else "")
            return f"`{error.keyword or name}` needs a value"
        case UnusedCliTokensError(unused_tokens=[token, *_]):
            return f"there is nothing for `{token}` to be; a request of several words needs quotes around it"
        case _:
            return " ".join(str(error).split()).rstrip(".")


def _near(token: str, error: UnknownCommandError) -> str:
    known: list[str] = list(error.app) if error.app is not None else []
    commands = [name for name in known if not name.startswith("-")]
    near = nearest(token, commands)
    return f"; did you mean `{near}`?" if near else f"; there are {', '.join(commands)}"
