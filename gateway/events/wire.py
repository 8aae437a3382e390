"""Events as the wire has them, and who may see which: the same for the stream and for its list."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.core.event import BY_NAME, Sight
from gateway.core.record import Document, instant
from gateway.doors.auth import Grant
from gateway.doors.http.problems import dumped
from gateway.store.journal import Entry

MEMBERS = {
    "consensus": "consensusId",
    "delivery": "deliveryId",
    "key": "keyId",
    "lease": "leaseId",
    "mailbox": "mailboxId",
    "override": "overrideReason",
    "token": "fencingToken",
}
"""Members of the log's data that are called otherwise on the wire."""


def shown(entry: Entry, tenant: str) -> Document:
    """An event: its id and type, when it happened, whom and what it is about, then what else it says."""
    body: Document = {
        "id": entry.id,
        "type": BY_NAME[entry.name].public,
        "occurredAt": instant(entry.at),
        "tenantId": tenant,
    }
    if entry.send_id:
        body["requestId"] = entry.send_id
    if entry.mailbox:
        body["mailboxId"] = entry.mailbox
    if entry.contact:
        body["recipientEmail" if entry.send_id else "contactEmail"] = entry.contact
    if entry.actor:
        body["agentId" if entry.actor.startswith("agent_") else "actor"] = entry.actor
    return {MEMBERS.get(name, name): value for name, value in entry.data.items()} | body


def frame(entry: Entry, tenant: str) -> bytes:
    """The same as a frame of the stream; JSON in ASCII has no line end in it that could begin another frame."""
    name = BY_NAME[entry.name].public.encode()
    return b"id: " + entry.id.encode() + b"\nevent: " + name + b"\ndata: " + dumped(shown(entry, tenant)) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events are wanted: `names` of the log (`None`: all), about one contact's key (`None`: all)."""

    names: frozenset[str] | None = None
    contact: str | None = None

    def wants(self, entry: Entry) -> bool:
        """Whether an event is wanted."""
        if self.names is not None and entry.name not in self.names:
            return False
        return self.contact is None or self.contact in about(entry)


def about(entry: Entry) -> Iterable[str]:
    """The keys of all people that an event is about."""
    several: Iterable[str] = entry.data.get("recipients", ())
    return (entry.contact, *several)


def visible(entry: Entry, grant: Grant) -> bool:
    """Whether the caller may see an event (core/event says who may)."""
    sight = BY_NAME[entry.name].sight
    if sight is Sight.MANAGERS:
        return grant.mailboxes is None and "manage" in grant.scopes
    return sight is Sight.TENANT or grant.mailboxes is None or entry.mailbox in grant.mailboxes


@dataclass(frozen=True, slots=True)
class Piece:
    """An event and its frame, made once for all who listen."""

    entry: Entry
    frame: bytes = field(repr=False)
