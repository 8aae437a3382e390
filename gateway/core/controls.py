"""Controls that an agent may tighten and only a person loosens: what mailboxes, agents and tenants can set for themselves.

A control is stored under its own name and has another one on the wire; which change of it loosens is decided here alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.allowlist import covers

DEMANDS = {"": 0, "lease": 1, "token": 2, "both": 2}
"""What a mailbox may demand of a send, by weight: a token is worth nothing without its lease."""
CAUTIOUS = "hold"
"""The setting for unknown deliveries (SEMANTICS 5) that does nothing by itself."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Control:
    """One control: its stored name, its name on the wire, and whether a change from one value to another loosens it."""

    name: str
    wire: str
    loosens: Callable[[Any, Any], bool]


def _unknown(old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> bool:
    """Every kind whose setting changes must end at the cautious one."""
    before, after = old or {}, new or {}
    return any(before.get(k) != after.get(k) != CAUTIOUS for k in {*before, *after})


def _allowed(old: list[str] | None, new: list[str] | None) -> bool:
    return not covers(None if old is None else frozenset(old), None if new is None else frozenset(new))


CONTROLS = (
    Control("demands", "demands", lambda old, new: DEMANDS[new or ""] < DEMANDS[old or ""]),
    Control("may_reply", "mayReply", lambda old, new: bool(new) and not old),
    Control("transactional", "transactional", lambda old, new: bool(new) and not old),
    Control("unknown", "unknown", _unknown),
    Control("cooldown", "cooldownMinutes", lambda old, new: new < old),
    Control("allowed", "allowedRecipientDomains", _allowed),
    Control("require_consensus", "requireConsensus", lambda old, new: bool(old) and not new),
    Control("require_consent", "requireConsentForMarketing", lambda old, new: bool(old) and not new),
    Control("internal", "internalAddresses", lambda old, new: not set(new) <= set(old)),
    Control("physical_address", "physicalAddress", lambda old, new: bool(old) and new != old),
)


def loosened(old: Values, new: Values, usual: Values) -> list[str]:
    """The controls, by their names on the wire, that are weaker in `new` than in `old`.

    A control that stands in neither is not looked at; `usual` says what one is worth where it is `None` or missing.
    """
    return [
        one.wire
        for one in CONTROLS
        if (one.name in old or one.name in new) and one.loosens(_of(old, one, usual), _of(new, one, usual))
    ]


def _of(values: Values, one: Control, usual: Values) -> Any:  # noqa: ANN401  (each control has its own kind of value)
    value = values.get(one.name)
    return usual.get(one.name) if value is None else value
