"""Many sends in one request: each is judged like a single one, in order, in a few transactions that follow each other.

The items of a batch count against each other. What cannot be a mail is an error of its own and harms no other. On request
the answer is a stream with one line for each item, written as soon as its group is decided.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from gateway.core.errors import ConflictError, StoreUnavailableError
from gateway.core.record import Document, Receipt
from gateway.core.status import answer
from gateway.core.verdict import KEY_REUSED
from gateway.doors import answers
from gateway.doors.asked import SendRequest
from gateway.doors.auth import Grant
from gateway.doors.chance import new_request_id
from gateway.doors.http import batched
from gateway.doors.http.batched import Batch, BatchRequest, BatchTrial, items_of, weigh
from gateway.doors.http.described import PROBLEMS, header, takes
from gateway.doors.http.inlet import LARGE, Needs, agent_of, context_of, of_shape, reader_of, take_given
from gateway.doors.http.problems import dumped, reply
from gateway.doors.http.sends import letter_of
from gateway.doors.letter import Letter
from gateway.doors.message import Terms
from gateway.doors.refusal import Faults, Refusal

NDJSON = "application/x-ndjson"
ERROR = "error"

_STREAM: dict[int | str, Document] = {
    200: {
        "description": "What became of each item, in order, and the totals; as a stream one line each.",
        "content": {NDJSON: {"schema": {"type": "string"}}},
    }
}
router = APIRouter(tags=["send"], responses=PROBLEMS | _STREAM)
Sending = Annotated[Grant, Depends(Needs("send"))]
_HEADERS = {
    "parameters": [
        header("X-Agent-Id", "The agent as which a key without one acts, by id or name."),
        header("Accept", f"With {NDJSON} the answer is a stream: a line for each item, at last one with the totals."),
    ]
}


@router.post("/v1/agent/batch/request-send", openapi_extra=takes(BatchRequest, SendRequest) | _HEADERS)
async def batch_request_send(request: Request, grant: Sending) -> Response:
    """Judge up to 500 mails in order and take those that may go; each counts for those that come after it.

    `results` has an answer like that of request-send for each item; one that cannot be a mail has the status `error`. An
    item that repeats an earlier one gets its receipt. The same batch may be sent again: what was taken is not sent twice.
    """
    run = await _begun(request, grant, BatchRequest, may_be_empty=False)
    return await _answered(request, run)


@router.post("/v1/agent/simulate-batch", openapi_extra=takes(BatchTrial, SendRequest) | _HEADERS)
async def simulate_batch(request: Request, grant: Sending) -> Response:
    """Say what a batch would be answered, as if its items came one after the other, and write nothing."""
    run = await _begun(request, grant, BatchTrial, may_be_empty=True)
    return await _answered(request, replace(run, dry=True))


async def _begun(request: Request, grant: Grant, shape: type[Batch], *, may_be_empty: bool) -> "_Run":
    """Read the batch as a whole. Raises Faults, Refusal; then nothing of it was processed."""
    asked, given = await take_given(request, shape, grant)
    _refuse_headers(request)
    if given.get("overrideReason") is not None:
        grant.need("operator")
    settings = context_of(request).settings
    items = items_of(given)
    limit = settings.max_message_bytes * batched.WHOLE_MAX
    weights = weigh(items, limit)
    terms = Terms(
        "", context_of(request).store.about_now(grant.tenant), settings.hostname, await agent_of(request, grant)
    )
    return _Run(request, grant, terms, items, weights, limit, dry=asked.dry_run, may_be_empty=may_be_empty)


def _refuse_headers(request: Request) -> None:
    """What is meant for one mail cannot be meant for many."""
    alone = {"Idempotency-Key": "idempotencyKey", "X-Fencing-Token": "fencingToken"}
    faults = [(name, f"is for one mail; use {field} in each item") for name, field in alone.items()]
    found = [one for one in faults if one[0] in request.headers]
    if found:
        raise Faults(found)


# --- the walk ---------------------------------------------------------------------------------------------------------

Outcome = Receipt | Exception


@dataclass(frozen=True, slots=True)
class _Item:
    """One item: its place, whom it names, and the letter that was made of it, or why there is none.

    `first` is the place of an earlier item under the same key.
    """

    index: int
    who: str | None
    letter: Letter | None = None
    error: Exception | None = None
    first: int | None = None

    @property
    def fresh(self) -> bool:
        """Whether it is to be decided."""
        return self.letter is not None and self.error is None and self.first is None

    @property
    def people(self) -> int:
        """How many it is for."""
        return 0 if self.letter is None else len(self.letter.ticket.mail.keys)


@dataclass(slots=True)
class _Run:
    """A batch that is carried out; `made` counts the bytes of its messages, `limit` is how many there may be."""

    request: Request
    grant: Grant
    terms: Terms
    items: Sequence[Any]
    weights: Sequence[int]
    limit: int
    dry: bool
    may_be_empty: bool
    made: int = 0

    async def groups(self) -> AsyncIterator[list[Document]]:
        """The results of one group after the other. Raises StoreUnavailableError where nothing at all was decided."""
        known: dict[tuple[str, str], tuple[int, str]] = {}
        outcomes: dict[int, Outcome] = {}
        lost: StoreUnavailableError | None = None
        async for group in self._items(known):
            lost = lost or next((i.error for i in group if isinstance(i.error, StoreUnavailableError)), None)
            fresh = [item for item in group if item.fresh]
            decided: Sequence[BaseException | Receipt] = [lost] * len(fresh) if lost else await self._decide(fresh)
            for item, outcome in zip(fresh, decided, strict=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
                    raise outcome
                outcomes[item.index] = outcome
                lost = outcome if isinstance(outcome, StoreUnavailableError) else lost
            if lost and not any(isinstance(outcome, Receipt) for outcome in outcomes.values()):
                raise lost
            for item in group:
                outcomes[item.index] = _outcome(item, outcomes)
            yield [self._result(item, outcomes[item.index]) for item in group]

    async def _items(self, known: dict[tuple[str, str], tuple[int, str]]) -> AsyncIterator[list[_Item]]:
        """Consecutive groups, each small enough for one transaction; a dry run has none, so all are one group."""
        group: list[_Item] = []
        before = self.made
        people = 0
        for index in range(len(self.items)):
            group.append(await self._item(index, known))
            people += group[-1].people
            full = len(group) >= batched.GROUP_ITEMS or people >= batched.GROUP_PEOPLE
            if (full or self.made - before >= batched.GROUP_BYTES) and not self.dry:
                yield group
                group, before, people = [], self.made, 0
        if group:
            yield group

    async def _item(self, index: int, known: dict[tuple[str, str], tuple[int, str]]) -> _Item:
        """Make the letter of an item; `known` are the items before it by mailbox and key."""
        given, who = self.items[index], batched.named(self.items[index])
        await asyncio.sleep(0)  # others on this loop need not wait for all of a group
        try:
            asked = await self._read(given, large=self.weights[index] > LARGE)
            if self.made > self.limit:  # as it was for the item before: no message is made for nothing
                raise batched.too_much(self.limit)
            terms = replace(self.terms, id=new_request_id())
            made = await letter_of(self.request, self.grant, asked, terms, may_be_empty=self.may_be_empty)
            self.made += len(made.ticket.body)
            if self.made > self.limit:
                raise batched.too_much(self.limit)
        except (Refusal, StoreUnavailableError) as error:
            return _Item(index, who, error=error)
        mail = made.ticket.mail
        first, fingerprint = known.setdefault((mail.mailbox, mail.idempotency_key), (index, mail.fingerprint))
        if first == index:
            return _Item(index, who, made)
        if fingerprint == mail.fingerprint:
            return _Item(index, who, made, first=first)
        more = {"nextAction": KEY_REUSED.next, "idempotencyKey": mail.idempotency_key}
        return _Item(index, who, made, ConflictError(KEY_REUSED.slug, KEY_REUSED.text, **more), first)

    async def _read(self, given: object, *, large: bool) -> SendRequest:
        reader = reader_of(self.request, self.grant)
        read = asyncio.to_thread(of_shape, given, SendRequest, reader) if large else None
        asked = of_shape(given, SendRequest, reader) if read is None else await read
        self.grant.same_tenant(asked.tenant_id)
        if asked.dry_run and not self.dry:
            raise Faults([("dryRun", "is for the whole batch")])
        return asked

    async def _decide(self, fresh: Sequence[_Item]) -> Sequence[BaseException | Receipt]:
        intake = context_of(self.request).intake
        tickets = [item.letter.ticket for item in fresh if item.letter is not None]
        if self.dry:
            return await asyncio.to_thread(intake.preview_all, tickets)
        return await intake.submit_all(tickets)

    def _result(self, item: _Item, outcome: Outcome) -> Document:
        """What became of an item: the members of a send's answer, or of an error, with its place and whom it names."""
        told: Document = {"index": item.index, "recipientEmail": item.who}
        dry = {"wouldAllow": False, "simulation": True} if self.dry else {}
        if isinstance(outcome, Exception):
            return told | dry | {"requestId": "", "status": ERROR} | batched.error_of(outcome)
        body = answer(outcome)
        if self.dry and item.letter is not None:
            body = answers.simulated(outcome, item.letter.sender)
        if item.who is None and outcome.record.deliveries:
            told["recipientEmail"] = outcome.record.deliveries[0].address
        return told | body


def _outcome(item: _Item, outcomes: dict[int, Outcome]) -> Outcome:
    """The item's own outcome, or what the earlier item under its key makes of it."""
    earlier = None if item.first is None else outcomes[item.first]
    if item.error is not None:
        if isinstance(item.error, ConflictError) and isinstance(earlier, Receipt):
            item.error.extra["requestId"] = earlier.record.id
        return item.error
    if isinstance(earlier, Receipt):
        return replace(earlier, replayed=True)
    return outcomes[item.index] if earlier is None else earlier


# --- the answer -------------------------------------------------------------------------------------------------------


class _Totals:
    """Counts results as they come."""

    def __init__(self, run: _Run) -> None:
        self.dry = run.dry
        self.id = None if run.dry else new_request_id().replace("req_", "batch_", 1)
        self.counts: Counter[str] = Counter()
        self.replayed = self.allowed = 0

    def add(self, results: Iterable[Document]) -> None:
        for result in results:
            self.counts[result["status"]] += 1
            self.replayed += bool(result.get("replayed"))
            self.allowed += bool(result.get("wouldAllow"))

    @property
    def body(self) -> Document:
        total, errors, blocked = self.counts.total(), self.counts[ERROR], self.counts["blocked"]
        names = ("wouldAllow", "wouldBlock") if self.dry else ("queued", "blocked")
        numbers = (self.allowed, total - errors - self.allowed) if self.dry else (total - errors - blocked, blocked)
        body = {"batchId": self.id, "total": total, **dict(zip(names, numbers, strict=True))}
        return body | {"errors": errors, "replayed": self.replayed, "counts": dict(self.counts)}


async def _answered(request: Request, run: _Run) -> Response:
    decided, totals = run.groups(), _Totals(run)
    first = await anext(decided)  # what goes wrong with all of it is an error of the whole, not of a stream
    totals.add(first)
    if _wants_lines(request):
        return StreamingResponse(_lines(first, decided, totals), media_type=NDJSON)
    results = list(first)
    async for group in decided:
        totals.add(group)
        results += group
    return reply(totals.body | {"results": results})


def _wants_lines(request: Request) -> bool:
    kinds = ",".join(request.headers.getlist("accept")).lower().replace(" ", "").split(",")
    return any(kind.partition(";")[0] == NDJSON and not kind.endswith((";q=0", ";q=0.0")) for kind in kinds)


async def _lines(
    first: list[Document], decided: AsyncIterator[list[Document]], totals: _Totals
) -> AsyncIterator[bytes]:
    """One line for each item, then the totals. A client that leaves stops what has not begun; the rest is recorded."""
    yield b"".join(dumped(result) + b"\n" for result in first)
    async for group in decided:
        totals.add(group)
        yield b"".join(dumped(result) + b"\n" for result in group)
    yield dumped(totals.body) + b"\n"
