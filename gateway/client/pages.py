"""Lists that come in pages: which request is next, and what a page held."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, Unpack

from gateway.client import shapes
from gateway.client.call import Answer, Call
from gateway.client.calls import COORDINATION
from gateway.client.errors import NotAGateway
from gateway.client.mail import Filters, in_query, part
from gateway.client.reading import read
from gateway.client.shape import Shape

S = TypeVar("S", bound=Shape)


class Walk(Generic[S]):
    """A way through the pages of a list; iterate over it for the requests, and give it each answer before the next."""

    def __init__(self, kind: type[S], path: str, query: dict[str, str] | None = None) -> None:
        """Begin at the first page."""
        self._kind = kind
        self._path = path
        self._query = query or {}
        self._cursor: str | None = ""

    def __iter__(self) -> Iterator[Call[list[S]]]:
        """The requests, until a page is the last."""
        while self._cursor is not None:
            more = {"cursor": self._cursor} if self._cursor else {}
            yield Call("GET", self._path, self._taken, query=self._query | more)

    def _taken(self, answer: Answer) -> list[S]:
        body: Any = answer.body
        if isinstance(body, list):
            body = {"items": body}
        items = body.get("items") if isinstance(body, dict) else None
        if not isinstance(items, list):
            raise NotAGateway("the answer is no page of a list")
        following = body.get("nextCursor")
        self._cursor = following if isinstance(following, str) and following else None
        return [read(self._kind, one) for one in items]


def requests(**filters: Unpack[Filters]) -> Walk[shapes.Sent]:
    """The tenant's sends, newest first."""
    return Walk(shapes.Sent, "/v1/agent/requests", in_query(filters))


def consensuses(status: str | None = None) -> Walk[shapes.Consensus]:
    """The tenant's questions."""
    return Walk(shapes.Consensus, f"{COORDINATION}/consensus", in_query({"status": status}))


def votes(consensus_id: str) -> Walk[shapes.Vote]:
    """The votes on a question."""
    return Walk(shapes.Vote, f"{COORDINATION}/consensus/{part(consensus_id)}/votes")
