"""From the members of the wire to values: what a shape's fields are called there, and what makes each of them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from gateway.client.errors import NotAGateway
from gateway.client.shape import Shape

S = TypeVar("S", bound=Shape)
Members = dict[str, tuple[str, Callable[[Any], Any]]]


def read(kind: type[S], body: object) -> S:
    """The answer in its shape. Raises NotAGateway where a member that it cannot do without is missing or of another type."""
    if not isinstance(body, Mapping):
        raise NotAGateway(f"the answer is no {kind.__name__.lower()}: it is not an object")
    values: dict[str, Any] = {}
    for name, (wire, convert) in _members(kind).items():
        if body.get(wire) is not None:
            try:
                values[name] = convert(body[wire])
            except (TypeError, ValueError):
                raise NotAGateway(f"the answer's {wire} is not what it should be", body=body) from None
    try:
        return kind(body=dict(body), **values)
    except TypeError:
        raise NotAGateway(f"the answer is no {kind.__name__.lower()}: members are missing", body=body) from None


_known: dict[type[Shape], Members] = {}


def _members(kind: type[Shape]) -> Members:
    """Each field's name on the wire, and what makes its value."""
    if kind not in _known:
        hints = get_type_hints(kind)
        _known[kind] = {
            one.name: (one.metadata.get("wire") or camel(one.name), _converter(hints[one.name]))
            for one in fields(kind)
            if one.name != "body"
        }
    return _known[kind]


def camel(name: str) -> str:
    """A name as the wire has it."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _converter(hint: Any) -> Callable[[Any], Any]:  # noqa: ANN401  (a type as it was written)
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (one for one in get_args(hint) if one is not NoneType)
        return _converter(inner)
    if get_origin(hint) is tuple:
        one = _converter(get_args(hint)[0])
        return lambda value: tuple(map(one, _checked(value, list)))
    if hint is datetime:
        return datetime.fromisoformat
    if isinstance(hint, type) and issubclass(hint, Shape):
        return lambda value: read(hint, value)
    kind = get_origin(hint) or hint
    return lambda value: _checked(value, kind)


def _checked(value: Any, kind: type) -> Any:  # noqa: ANN401  (JSON)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(kind.__name__)
    return value
