"""The tables of docs/client.md: the methods of both clients, what they are given and what they give."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gateway.client import Client, granted, granting, mail, shapes
from gateway.client.holding import Hold
from gateway.client.shape import Shape
from gateway.client.verbs import Verbs
from tests.markdown import table

GIVEN = (mail.Mail, mail.BatchMail, mail.Filters, mail.Config, granting.KeyChange)
"""What a method takes by name beside its own arguments."""


def public() -> list[str]:
    """The names of all methods, those of `Verbs` first, in the order of the code."""
    return [name for kind in (Verbs, Client) for name, one in vars(kind).items() if name[0] != "_" and callable(one)]


def methods() -> str:
    """Every method: its arguments with their types and defaults, what it gives, what it does."""
    rows = []
    for name in public():
        act = getattr(Client, name)
        signature = inspect.signature(act)
        own = [one for one in signature.parameters.values() if one.name != "self"]
        rows.append((f"`{name}`", ", ".join(_arguments(own)), _gives(name, signature), _says(act)))
    return table(("method", "arguments", "gives", "what it does"), rows)


def _arguments(own: list[inspect.Parameter]) -> Iterator[str]:
    named = False
    for one in own:
        if one.kind is one.VAR_KEYWORD:
            yield f"`**{one.name}: {get_args(one.annotation)[0].__name__}`"
            continue
        if one.kind is one.KEYWORD_ONLY and not named:
            named = True
            yield "`*`"
        default = "" if one.default is one.empty else f" = {one.default!r}"
        yield f"`{one.name}: {kind(one.annotation)}{default}`"


def _gives(name: str, signature: inspect.Signature) -> str:
    hint = signature.return_annotation
    if name == "lease":
        return f"a block that holds a `{kind(get_args(hint)[0])}`"
    return "" if hint is None else f"`{kind(hint)}`"


def _says(one: object) -> str:
    return " ".join((inspect.getdoc(one) or "").split())


def given() -> str:
    """What a mail, filters, a configuration and a change of a key may hold."""
    rows = []
    for one in GIVEN:
        base = next((other for other in GIVEN if other in getattr(one, "__orig_bases__", ())), None)
        known = {} if base is None else get_type_hints(base)
        own = [(name, hint) for name, hint in get_type_hints(one).items() if name not in known]
        first = [] if base is None else [f"those of `{base.__name__}`"]
        rows.append((f"`{one.__name__}`", ", ".join([*first, *(f"`{name}: {kind(hint)}`" for name, hint in own)])))
    return table(("of", "members"), rows)


def answers() -> str:
    """Every shape of an answer: its members with their types, and what it is."""
    every = (*vars(shapes).values(), *vars(granted).values())
    known = [one for one in every if inspect.isclass(one) and issubclass(one, Shape)]
    rows = [
        (f"`{one.__name__}`", ", ".join(f"`{member}`" for member in _members(one)), _says(one))
        for one in (*known, Hold)
        if one is not Shape
    ]
    return table(("answer", "members", "what it is"), rows)


def _members(one: type) -> Iterator[str]:
    if issubclass(one, Shape):
        hints = get_type_hints(one)
        yield from (f"{field.name}: {kind(hints[field.name])}" for field in fields(one) if field.name != "body")
    for name, value in vars(one).items():
        if isinstance(value, property):
            yield f"{name}: {kind(get_type_hints(value.fget)['return'])}"


def kind(hint: Any) -> str:  # noqa: ANN401 - a type as it was written
    """A type in the words of Python, without modules."""
    outer, inner = get_origin(hint), get_args(hint)
    if outer in (Union, UnionType):
        return " | ".join(map(kind, inner))
    if outer is Literal:
        return " | ".join(map(repr, inner))
    if outer is Callable:
        return f"Callable[[{', '.join(map(kind, inner[0]))}], {kind(inner[1])}]"
    if outer is not None:
        return f"{outer.__name__}[{', '.join(map(kind, inner))}]"
    if hint in (None, NoneType, ...):
        return "..." if hint is ... else "None"
    return str(hint.__name__)
