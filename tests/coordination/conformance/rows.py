"""What a row of the table is: what the page documents, the way to ask, what must be answered, and where that differs.

Every row has a tenant of its own, with a mailbox and no agent. Its keys: `key`, `other` and `third` read, send and manage;
`reader` reads, `sender` sends, `boxed` has only one mailbox, `operator` is a person's. Words that begin with `$` in a request
or an answer stand for what an earlier answer had (`$agent`, `$lease`, `$consensus`), and for `$tenant`, `$mailbox`, `$key_id`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from string import Template
from typing import Any


@dataclass(frozen=True, slots=True)
class Http:
    """A request by the key named `by`; `keep` are names for members of its answer.

    `status` is what it must have where it is done before a row. As `event` it reads the log of events.
    """

    method: str
    path: str
    body: Any = None
    by: str = "key"
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    door: str = "http"


@dataclass(frozen=True, slots=True)
class Cli:
    """A command as it is typed, without the word `gateway`; `--json` is added where its answer is compared as JSON."""

    words: str
    by: str = "key"
    door: str = "cli"


@dataclass(frozen=True, slots=True)
class Tool:
    """A call of an MCP tool; a name with `://` is a resource to read."""

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    by: str = "key"
    door: str = "mcp"


@dataclass(frozen=True, slots=True)
class Later:
    """So many seconds pass."""

    seconds: float
    door: str = ""


Ask = Http | Cli | Tool


@dataclass(frozen=True, slots=True)
class Want:
    """What is answered. `body` are the documented members, `ours` the names of those that stand beside them.

    `status` is HTTP's; of a command its exit code; a tool and a resource have none. With `part` the answer has more members,
    which are described elsewhere. `out` and `err` are patterns for what a command prints. The page shows
    only the members in `show`, where there are some; all are tried.
    """

    body: Any = None
    status: int = 200
    ours: tuple[str, ...] = ()
    part: bool = False
    out: str = ""
    err: str = ""
    show: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Differs:
    """Where we differ: the section of SEMANTICS that says so, with its point where it has points, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the page documents. `of` are the examples and table cells that it answers for.

    `before` is done first, and must succeed; `note` says what the gateway has beyond the page.
    """

    says: str
    ask: Ask
    want: Want
    before: tuple[Http | Later, ...] = ()
    of: tuple[str, ...] = ()
    differs: Differs | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A heading of the page with the rows below it.

    `examples` are the titles of its code blocks, `cells` the first cells of its tables' rows, in order; `below` are the
    headings beneath it that only group them.
    """

    title: str
    rows: tuple[Row, ...]
    examples: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def post(path: str, body: Any = None, by: str = "key", **more: Any) -> Http:  # noqa: ANN401 - JSON
    """A POST."""
    return Http("POST", path, body, by, **more)


def get(path: str, by: str = "key", **more: Any) -> Http:
    """A GET."""
    return Http("GET", path, None, by, **more)


def events(types: str, by: str = "key") -> Http:
    """A look at the log of events."""
    return Http("GET", "/v1/agent/events", None, by, query={"eventTypes": types}, door="event")


def filled(template: Any, known: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """A request or an answer with what is known in place of the words that stand for it."""
    if isinstance(template, str):
        return Template(template).substitute(known)
    if isinstance(template, Mapping):
        return {name: filled(one, known) for name, one in template.items()}
    return [filled(one, known) for one in template] if isinstance(template, list) else template


REGISTER = "/v1/agent/register"
BEAT = "/v1/agent/coordination/heartbeat"
LEASE = "/v1/agent/coordination/lease"
LEASES = "/v1/agent/coordination/leases"
CONSENSUS = "/v1/agent/coordination/consensus"
SEND = "/v1/agent/request-send"

USER = "user@example.com"
CHIEF = "ceo@example.com"

ME = post(REGISTER, {"agentName": "outreach-agent", "bindKey": True}, keep={"agent": "id"})
"""The agent of the key `key`."""
OTHER = post(REGISTER, {"agentName": "other-agent", "bindKey": True}, "other", keep={"other": "id"})
"""The agent of the key `other`."""
THIRD = post(REGISTER, {"agentName": "third-agent", "bindKey": True}, "third", keep={"third_agent": "id"})
"""The agent of the key `third`."""
KEYLESS = post(REGISTER, {"agentName": "outreach-agent"}, keep={"agent": "id"})
"""The same name, and no key is bound to it."""
LEASED = post(LEASE, {"contactEmail": USER, "agentName": "outreach-agent"}, keep={"lease": "id"})
TAKEN = post(LEASE, {"contactEmail": USER}, "other", keep={"lease": "id", "until": "expiresAt"})
PROPOSED = post(
    CONSENSUS,
    {
        "proposerAgent": "outreach-agent",
        "action": "pause outreach",
        "contactEmail": CHIEF,
        "reason": "Fatigue scores are high",
    },
    keep={"consensus": "id"},
)


ADVISED = ("agent_mismatch", "agent_bound_to_key")
"""Errors that say what to do."""


def mail(key: str = "once", to: str = USER, **more: Any) -> dict[str, Any]:
    """A mail."""
    return {"to": to, "subject": "hello", "text": "hi", "idempotencyKey": key, **more}


def unknown_agent(ask: Http, what: str) -> Row:
    """The row that says that an agent must be known."""
    return Row(
        f"{what} that names an agent that is not registered is 404 `agent_not_found`.",
        ask,
        error(404, "agent_not_found"),
    )


def only(want: Want, *names: str) -> Want:
    """An answer of which the page shows these members."""
    return replace(want, show=names)


def error(status: int, slug: str, **more: Any) -> Want:
    """An error of the wire; every one has a `message`, and some say what to do."""
    return Want({"error": slug, **more}, status, ("message", "nextAction") if slug in ADVISED else ("message",))
