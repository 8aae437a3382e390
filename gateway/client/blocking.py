"""The client that blocks until the answer is there. It may be used by several threads."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeVar, Unpack

import httpx
import tenacity

from gateway.client import holding, pages, shapes
from gateway.client.call import LINES, STREAM, Answer, Call, judged, of_line, taken
from gateway.client.calls import acquire
from gateway.client.errors import GatewayError, NotAGateway, Unreachable
from gateway.client.hearing import Back, Ear, Lost
from gateway.client.holding import Hold
from gateway.client.line import Line, content_type
from gateway.client.mail import Filters
from gateway.client.pages import Walk
from gateway.client.shape import Shape
from gateway.client.verbs import Verbs
from gateway.client.where import Place, found

T = TypeVar("T")
S = TypeVar("S", bound=Shape)


class Client(Verbs):
    """A gateway, asked with one key; use it in a `with` block, or `close` it.

    Without `url` and `key` they are GATEWAY_URL and GATEWAY_KEY, else the profile's. `agent` (id or name) is who acts where
    the key is bound to none; `timeout` is in seconds. Raises NotSetUp where there is no URL or key to use.
    """

    blocking = True

    def __init__(
        self,
        url: str | Place | None = None,
        key: str | None = None,
        agent: str | None = None,
        timeout: float = 30,
        retries: int = 4,
    ) -> None:
        place = url if isinstance(url, Place) else found(url, key)
        self._line = Line(place, agent, timeout, retries)
        self._http = httpx.Client(trust_env=not place.near)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def ask(self, call: Call[T]) -> T:
        """Carry a request out, and read its answer. Raises GatewayError."""
        return taken(call, self.answer(call))

    def answer(self, call: Call[Any]) -> Answer:
        """Carry a request out. Raises GatewayError."""
        holding.check()
        return self._answer(call)

    def _answer(self, call: Call[Any]) -> Answer:
        return tenacity.Retrying(**self._line.policy(call))(self._once, call)

    def _once(self, call: Call[Any]) -> Answer:
        try:
            response = self._http.request(**self._line.request(call))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._line.failure(error, call) from error
        return judged(call, response.status_code, response.headers, response.content)

    @contextlib.contextmanager
    def _opened(self, call: Call[Any]) -> Iterator[httpx.Response]:
        """An answer that is read as it comes. Raises GatewayError, also for what goes wrong while it is read."""
        try:
            with self._http.stream(**self._line.request(call)) as response:
                if not response.is_success:
                    judged(call, response.status_code, response.headers, response.read())
                yield response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._line.failure(error, call) from error

    def lines(self, call: Call[Any]) -> Iterator[Any]:
        """Carry a request out, and yield the JSON of its answer's lines as they come. Raises GatewayError."""
        holding.check()
        with contextlib.ExitStack() as stack:
            opening = tenacity.Retrying(**self._line.policy(call))
            response = opening(lambda: stack.enter_context(self._opened(call)))
            if content_type(response.headers) == LINES:
                yield from map(of_line, response.iter_lines())
            else:
                yield judged(call, response.status_code, response.headers, response.read()).body

    # --- lists --------------------------------------------------------------------------------------------------------

    def _each(self, walk: Walk[S]) -> Iterator[S]:
        for call in walk:
            yield from self.ask(call)

    def requests(self, **filters: Unpack[Filters]) -> Iterator[shapes.Sent]:
        """All sends that fit, newest first, page by page."""
        return self._each(pages.requests(**filters))

    def consensuses(self, status: str | None = None) -> Iterator[shapes.Consensus]:
        """All questions that agents were asked to vote on."""
        return self._each(pages.consensuses(status))

    def votes(self, consensus_id: str) -> Iterator[shapes.Vote]:
        """All votes on a question."""
        return self._each(pages.votes(consensus_id))

    # --- what happens -------------------------------------------------------------------------------------------------

    def listen(
        self,
        events: str | Sequence[str] | None = None,
        contact: str | None = None,
        since: str | None = None,
        *,
        lost: Lost | None = None,
        back: Back | None = None,
    ) -> Iterator[shapes.Event]:
        """Tell events as they happen, without end: after the one with the id `since`, else from now on.

        A stream that breaks is asked for again, and goes on where it was; `lost` is told of it, and `back` once it is there
        again. Raises Unauthorized where the key is good no longer, and Unreachable where there is no gateway at the start.
        """
        ear = Ear(events, contact, since)
        while True:
            try:
                yield from self._heard(ear, back)
            except GatewayError as error:
                wait = ear.lost(error)
                if lost is not None:
                    lost(error, wait)
                time.sleep(wait)

    def _heard(self, ear: Ear, back: Back | None) -> Iterator[shapes.Event]:
        """One connection's events. Raises GatewayError, always."""
        call = ear.stream()
        with contextlib.ExitStack() as stack:
            opening = tenacity.Retrying(**self._line.policy(call, once=ear.begun))
            response = opening(lambda: stack.enter_context(self._opened(call)))
            if content_type(response.headers) != STREAM:
                raise NotAGateway("the answer is no stream of events")
            ear.opened(back)
            for line in response.iter_lines():
                if (event := ear.hear(line)) is not None:
                    yield event
                while (missing := ear.missing()) is not None:
                    yield from ear.found(self.ask(missing))
        raise Unreachable("broken", "the stream has ended", url=self._line.place.url)

    # --- leases -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lease(
        self,
        contact: str,
        minutes: float = 30,
        *,
        intent: str = "general",
        wait_seconds: int = 0,
        keep: bool = False,
        agent: str | None = None,
    ) -> Iterator[Hold]:
        """Hold a lease on a contact while the block runs, and give it back at its end, also one that was there before.

        Raises LeaseConflict where another agent has it. With `keep` a thread renews it at half of its time; where that fails, the
        next request of the block raises LeaseLost.
        """
        began = time.monotonic()
        call = acquire(contact, minutes=minutes, intent=intent, wait_seconds=wait_seconds, agent=agent)
        hold = Hold(self.ask(call), minutes, agent, began)
        ended = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(hold, ended), name=f"lease {hold.lease.id}", daemon=True)
        if keep:
            keeper.start()
        holding.enter(hold)
        try:
            yield hold
        finally:
            holding.leave(hold)
            ended.set()
            if keep:
                keeper.join()
            if not hold.lost:
                with contextlib.suppress(GatewayError):  # then it ends by itself, at its time
                    self._answer(hold.giving_back())

    def _keep(self, hold: Hold, ended: threading.Event) -> None:
        while not hold.lost and not ended.wait(hold.wait(time.monotonic())):
            began = time.monotonic()
            try:
                call = hold.renewal()
                hold.renewed(call.read(self._once(call)), began)
            except GatewayError as error:
                hold.failed(error, time.monotonic())
