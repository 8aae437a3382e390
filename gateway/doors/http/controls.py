"""What mailboxes, agents and tenants may set for themselves, as the wire has it: the members, how they are read and shown.

Which change loosens a control is decided in core/controls, under the lock.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StrictInt, Tag
from pydantic.alias_generators import to_camel

from gateway.core.mail import Kind
from gateway.core.record import Document
from gateway.core.verdict import Mode
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.doors.fields import Part, Pattern, fault
from gateway.doors.refusal import Faults, forbidden
from gateway.settings import UNKNOWN_SETTING, split_unknown

PATTERNS_MAX = 1000
MINUTE = 60
EVERY = "*"
"""Stands for all kinds of mail."""


def _setting(value: str) -> str:
    if UNKNOWN_SETTING.fullmatch(value) is None:
        raise fault(
            "must be hold, retry_once_after:TIME or assume_sent_after:TIME, with a time like 90s, 30m, 1h or 2d"
        )
    return value


Setting = Annotated[str, AfterValidator(_setting)]
KindName = Literal["outreach", "reply", "transactional"]
Unknown = Annotated[
    Annotated[Setting, Tag("<list>")] | Annotated[dict[KindName, Setting], Tag("<map>")],
    Discriminator(lambda value: "<map>" if isinstance(value, dict) else "<list>"),
]
Minutes = Annotated[StrictInt, Field(ge=0, le=1440)]
Patterns = Annotated[list[Pattern], Field(max_length=PATTERNS_MAX)]

UNKNOWN_WORDS = "What becomes of deliveries that are unknown: one setting, or one by kind of mail; null: as usual."
COOLDOWN_WORDS = "Whole minutes between two mails to one person; null: as usual."
ALLOWED_WORDS = (
    "To whom mail may go: example.com, *.example.com for all below it, an address, or * for everybody; an empty list lets "
    "nobody through, null is no list."
)


class Controls(Part):
    """What a mailbox may set for itself; what is null is as usual."""

    demands: Literal["", "lease", "token", "both"] | None = Field(
        None, description="What a send must carry: nothing, a lease, a fencing token, or both."
    )
    may_reply: bool | None = Field(None, description="It may send mail of kind reply.")
    transactional: bool | None = Field(None, description="It may send mail that neither holds nor is held.")
    require_consensus: bool | None = Field(None, description="What it sends must name a consensus that was approved.")
    unknown: Unknown | None = Field(None, description=UNKNOWN_WORDS)
    cooldown_minutes: Minutes | None = Field(None, description=COOLDOWN_WORDS)
    allowed_recipient_domains: Patterns | None = Field(None, description=ALLOWED_WORDS)


STORED = {
    "demands": "demands",
    "may_reply": "may_reply",
    "transactional": "transactional",
    "require_consensus": "require_consensus",
    "unknown": "unknown",
    "cooldown_minutes": "cooldown",
    "allowed_recipient_domains": "allowed",
}
"""The stored name of each control by its member."""
WIRE = tuple(map(to_camel, STORED))


def stored(asked: Part, context: Context, names: Iterable[str] = tuple(STORED)) -> dict[str, Any]:
    """The controls that a request names, as they are kept. Raises Faults."""
    given = {name: getattr(asked, name) for name in names if name in asked.model_fields_set}
    if "cooldown_minutes" in given and given["cooldown_minutes"] is not None:
        given["cooldown_minutes"] *= MINUTE
    if "unknown" in given:
        given["unknown"] = _by_kind(given["unknown"], context)
    if given.get("allowed_recipient_domains") is not None:
        given["allowed_recipient_domains"] = sorted(set(given["allowed_recipient_domains"]))
    return {STORED[name]: value for name, value in given.items()}


def _by_kind(setting: str | Mapping[str, str] | None, context: Context) -> dict[str, str] | None:
    if setting is None:
        return None
    kinds = {EVERY: setting} if isinstance(setting, str) else dict(setting)
    least = context.settings.reply_timeout_seconds + 5
    for one in kinds.values():
        act, seconds = split_unknown(one)
        if act == "retry_once_after" and seconds <= least:
            raise Faults([("unknown", f"retry_once_after must exceed {least:g} seconds")])
    return kinds


def shown(options: Mapping[str, Any]) -> Document:
    """The controls of a mailbox."""
    return {
        "demands": options.get("demands", ""),
        "mayReply": bool(options.get("may_reply")),
        "transactional": bool(options.get("transactional")),
        "requireConsensus": bool(options.get("require_consensus")),
        "unknown": unknown(options.get("unknown")),
        "cooldownMinutes": minutes(options.get("cooldown")),
        "allowedRecipientDomains": options.get("allowed"),
    }


def unknown(kinds: Mapping[str, str] | None) -> str | dict[str, str] | None:
    """The setting for unknown deliveries as it was given."""
    if not kinds:
        return None
    return kinds[EVERY] if set(kinds) == {EVERY} else {kind.value: kinds[kind] for kind in Kind if kind in kinds}


def minutes(seconds: int | None) -> int | float | None:
    """Seconds as minutes, whole ones where they are."""
    if seconds is None:
        return None
    return seconds // MINUTE if seconds % MINUTE == 0 else seconds / MINUTE


def usual_cooldown(context: Context) -> int:
    """The seconds of the policy that judges here, 0 where it is off."""
    rule = next((rule for rule in context.intake.rules if rule.name == "cooldown"), None)
    return 0 if rule is None or rule.mode is Mode.OFF else int(getattr(rule.policy, "seconds", 0))


def for_all_mailboxes(grant: Grant) -> None:
    """Refuse a key that is limited to mailboxes."""
    if grant.mailboxes is not None:
        raise forbidden("mailbox_scope_denied", "this needs a key for all mailboxes")


def person(grant: Grant) -> bool:
    """Whether a person's key asks, who may loosen."""
    return "operator" in grant.scopes
