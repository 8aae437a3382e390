"""The chapter on commands of docs/cli.md, made from the tree of commands."""

import functools
import textwrap
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any

from typer.main import get_command

from gateway.cli.tree import app
from tests.markdown import prose, table

HEAD = ("argument or option", "default", "what it says")
SHARED = {"--url", "--key", "--json", "--config", "--profile"}
SKIPPED = {"--help", "--install-completion", "--show-completion"}


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its whole name; in the order of the help."""
    yield from _below("gateway", get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer keeps its command classes to itself
    inner = getattr(command, "commands", None)
    if inner is None or command.invoke_without_command:
        yield name, command
    for word, one in (inner or {}).items():
        yield from _below(f"{name} {word}", one)


def options_of(command: Any) -> list[Any]:  # noqa: ANN401 - same
    """The options and arguments of a command that are its own."""
    return [one for one in command.params if not SKIPPED & set(one.opts)]


def commands() -> str:
    """Every command with its sentences, arguments and options."""
    return "\n\n".join(_command(name, command) for name, command in leaves())


def _command(name: str, command: Any) -> str:  # noqa: ANN401 - same
    params = options_of(command)
    usage = [name, *(_usage(one) for one in params if one.required), *(["[OPTIONS]"] if _optional(params) else [])]
    said = [prose(textwrap.fill(" ".join(part.split()), 118)) for part in (command.help or "").split("\n\n")]
    own = [(_name(one), _default(one), _help(one)) for one in params if not _shared(one)]
    parts = [f"### `{name}`", f"```\n{' '.join(usage)}\n```", *said]
    if own:
        parts.append(table(HEAD, own))
    also = [f"`{one.opts[0]}`" for one in params if _shared(one)]
    if also:
        parts.append(f"Also {', '.join(also)}.")
    return "\n\n".join(parts)


def shared() -> str:
    """The options that many commands have in common, said once."""
    known = {one.opts[0]: one for _, command in leaves() for one in options_of(command) if _shared(one)}  # all alike
    return table(HEAD, [(_name(one), _default(one), _help(one)) for one in known.values()])


def _shared(param: Any) -> bool:  # noqa: ANN401 - same
    """Whether it is one of those that many have; another one of the same name stands with its command."""
    return (param.opts[0], param.help) in _many()


@functools.cache
def _many() -> frozenset[tuple[str, str]]:
    """Names of shared options, each with the sentence that most commands have for it."""
    found = Counter(
        (one.opts[0], one.help) for _, command in leaves() for one in options_of(command) if one.opts[0] in SHARED
    )
    said = {name: sentence for (name, sentence), _ in reversed(found.most_common())}
    return frozenset(said.items())


def _optional(params: list[Any]) -> bool:
    return any(not one.required for one in params)


def _usage(param: Any) -> str:  # noqa: ANN401 - same
    words = _metavar(param) if param.param_type_name == "argument" else f"{param.opts[0]} {_metavar(param)}"
    return f"{words}..." if param.nargs == -1 else words


def _metavar(param: Any) -> str:  # noqa: ANN401 - same
    annotation = param.type_descriptor.annotation
    if param.metavar:
        return str(param.metavar)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(one.value) for one in annotation)
    return str(getattr(annotation, "__name__", annotation)).upper()


def _name(param: Any) -> str:  # noqa: ANN401 - same
    if param.param_type_name == "argument":
        return f"`{_metavar(param)}`"
    shown = " ".join([", ".join([*param.opts, *param.secondary_opts]), *([] if param.is_flag else [_metavar(param)])])
    return f"`{shown}`"


def _default(param: Any) -> str:  # noqa: ANN401 - same
    if param.required:
        return "(needed)"
    value = param.default.value if isinstance(param.default, Enum) else param.default
    return "" if value in (None, False, "", ()) else f"`{value}`"


def _help(param: Any) -> str:  # noqa: ANN401 - same
    said = str(param.help or "")
    return f"{said} Variable: `{param.envvar}`." if getattr(param, "envvar", None) else said
