"""The client that is awaited. It belongs to one event loop."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
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


class AsyncClient(Verbs):
    """A gateway, asked with one key; use it in an `async with` block, or `close` it.

    Without `url` and `key` they are GATEWAY_URL and GATEWAY_KEY, else the profile's. `agent` (id or name) is who acts where
    the key is bound to none; `timeout` is in seconds. Raises NotSetUp where there is no URL or key to use.
    """

    waiting = True

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
        self._http = httpx.AsyncClient(trust_env=not place.near)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def ask(self, call: Call[T]) -> T:
        """Carry a request out, and read its answer. Raises GatewayError."""
        return taken(call, await self.answer(call))

    async def answer(self, call: Call[Any]) -> Answer:
        """Carry a request out. Raises GatewayError."""
        holding.check()
        return await self._answer(call)

    async def _answer(self, call: Call[Any]) -> Answer:
        return await tenacity.AsyncRetrying(**self._line.policy(call))(self._once, call)

    async def _once(self, call: Call[Any]) -> Answer:
        try:
            response = await self._http.request(**self._line.request(call))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._line.failure(error, call) from error
        return judged(call, response.status_code, response.headers, response.content)

    @contextlib.asynccontextmanager
    async def _opened(self, call: Call[Any]) -> AsyncIterator[httpx.Response]:
        """An answer that is read as it comes. Raises GatewayError, also for what goes wrong while it is read."""
        try:
            async with self._http.stream(**self._line.request(call)) as response:
                if not response.is_success:
                    judged(call, response.status_code, response.headers, await response.aread())
                yield response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._line.failure(error, call) from error

    async def _entered(self, stack: contextlib.AsyncExitStack, call: Call[Any]) -> httpx.Response:
        return await stack.enter_async_context(self._opened(call))

    async def lines(self, call: Call[Any]) -> AsyncIterator[Any]:
        """Carry a request out, and yield the JSON of its answer's lines as they come. Raises GatewayError."""
        holding.check()
        async with contextlib.AsyncExitStack() as stack:
            opening = tenacity.AsyncRetrying(**self._line.policy(call))
            response: httpx.Response = await opening(self._entered, stack, call)
            if content_type(response.headers) == LINES:
                async for line in response.aiter_lines():
                    yield of_line(line)
            else:
                yield judged(call, response.status_code, response.headers, await response.aread()).body

    # --- lists --------------------------------------------------------------------------------------------------------

    async def _each(self, walk: Walk[S]) -> AsyncIterator[S]:
        for call in walk:
            for one in await self.ask(call):
                yield one

    def requests(self, **filters: Unpack[Filters]) -> AsyncIterator[shapes.Sent]:
        """All sends that fit, newest first, page by page."""
        return self._each(pages.requests(**filters))

    def consensuses(self, status: str | None = None) -> AsyncIterator[shapes.Consensus]:
        """All questions that agents were asked to vote on."""
        return self._each(pages.consensuses(status))

    def votes(self, consensus_id: str) -> AsyncIterator[shapes.Vote]:
        """All votes on a question."""
        return self._each(pages.votes(consensus_id))

    # --- what happens -------------------------------------------------------------------------------------------------

    async def listen(
        self,
        events: str | Sequence[str] | None = None,
        contact: str | None = None,
        since: str | None = None,
        *,
        lost: Lost | None = None,
        back: Back | None = None,
    ) -> AsyncGenerator[shapes.Event, None]:
        """Tell events as they happen, without end: after the one with the id `since`, else from now on.

        A stream that breaks is asked for again, and goes on where it was; `lost` is told of it, and `back` once it is there
        again. Raises Unauthorized where the key is good no longer, and Unreachable where there is no gateway at the start.
        """
        ear = Ear(events, contact, since)
        while True:
            try:
                async with contextlib.aclosing(self._heard(ear, back)) as heard:
                    async for event in heard:
                        yield event
            except GatewayError as error:
                wait = ear.lost(error)
                if lost is not None:
                    lost(error, wait)
                await asyncio.sleep(wait)

    async def _heard(self, ear: Ear, back: Back | None) -> AsyncGenerator[shapes.Event, None]:
        """One connection's events. Raises GatewayError, always."""
        call = ear.stream()
        async with contextlib.AsyncExitStack() as stack:
            opening = tenacity.AsyncRetrying(**self._line.policy(call, once=ear.begun))
            response: httpx.Response = await opening(self._entered, stack, call)
            if content_type(response.headers) != STREAM:
                raise NotAGateway("the answer is no stream of events")
            ear.opened(back)
            async for line in response.aiter_lines():
                if (event := ear.hear(line)) is not None:
                    yield event
                while (missing := ear.missing()) is not None:
                    for event in ear.found(await self.ask(missing)):
                        yield event
        raise Unreachable("broken", "the stream has ended", url=self._line.place.url)

    # --- leases -------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def lease(
        self,
        contact: str,
        minutes: float = 30,
        *,
        intent: str = "general",
        wait_seconds: int = 0,
        keep: bool = False,
        agent: str | None = None,
    ) -> AsyncIterator[Hold]:
        """Hold a lease on a contact while the block runs, and give it back at its end, also one that was there before.

        Raises LeaseConflict where another agent has it. With `keep` a task renews it at half of its time; where that fails, the
        next request of the block raises LeaseLost.
        """
        began = time.monotonic()
        call = acquire(contact, minutes=minutes, intent=intent, wait_seconds=wait_seconds, agent=agent)
        hold = Hold(await self.ask(call), minutes, agent, began)
        keeper = asyncio.create_task(self._keep(hold), name=f"lease {hold.lease.id}") if keep else None
        holding.enter(hold)
        try:
            yield hold
        finally:
            holding.leave(hold)
            if keeper is not None:
                keeper.cancel()
                await asyncio.wait({keeper})
            if not hold.lost:
                with contextlib.suppress(GatewayError):  # then it ends by itself, at its time
                    await self._answer(hold.giving_back())

    async def _keep(self, hold: Hold) -> None:
        while not hold.lost:
            await asyncio.sleep(hold.wait(time.monotonic()))
            began = time.monotonic()
            try:
                call = hold.renewal()
                hold.renewed(call.read(await self._once(call)), began)
            except GatewayError as error:
                hold.failed(error, time.monotonic())
