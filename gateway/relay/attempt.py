"""One attempt to give one mail for one recipient to the smarthost, and what became of it.

The order is the whole point: envelope, body, *permit*, dot, reply. Up to the permit everything that goes wrong is
plain: the mail is not taken, so it is deferred, bounced or given back. From the first byte of the dot on the mail may
have been taken, and only a whole, readable reply of 2yz, 4yz or 5yz says what became of it; all else is unknown and is
never guessed.

An exception out of `permit` or `step` goes on to the caller, and the connection is broken off; before "dot.sent" no dot
has left. The same holds for a cancellation, which should therefore not be used once the permit may be committed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.core.delivery import Bounced, Deferred, GivenBack, Outcome, Relayed, Reply, Unknown
from gateway.relay.outgoing import Outgoing, Unfit, beside
from gateway.relay.pool import Closing, Pool
from gateway.relay.smarthost import Unreachable
from gateway.relay.wire import Lost, Wire

LEAST_RATE = 1_000
"""Bytes a second that a smarthost must take of a body, beyond one command's time, or the attempt is given up."""

STAGES = ("mail", "rcpt", "data")
GO_ON = 354
CLOSING = 421
OF_THE_SESSION = frozenset({503, 530, 534, 535, 538})
"""Out of order, no login, no TLS (RFC 5321, 4.2.3; RFC 4954, 6): before the dot such a no is about the two servers."""

Permit = Callable[[], Awaitable[str | None]]
Step = Callable[[str], Awaitable[None]]


class _Stale(Exception):  # noqa: N818 - says what the connection was
    """A connection that was kept was dead when we spoke; nothing was lost by it, a new one may do."""


async def attempt(
    pool: Pool,
    mail: Outgoing,
    permit: Permit,
    *,
    boot_clock: Callable[[], float],
    late: float = 5.0,
    step: Step | None = None,
    late_reply: Callable[[Reply], None] | None = None,
) -> Outcome:
    """Makes one attempt and returns its outcome.

    `permit` is asked once, when nothing but the dot is missing: it returns None, or a word that says why not.
    `boot_clock` gives seconds that also pass while the machine sleeps; when more than `late` seconds have passed since
    the permit was asked for, no dot is sent. `step` is awaited at "body.sent", "permit.committed", "dot.sent" and
    "reply.read". `late_reply` is called with a reply that comes after its time is over and the outcome is Unknown; what
    it says of the mail is `verdict(reply, "dot")`.
    """
    fresh = False
    while True:
        try:
            wire = await pool.acquire(fresh=fresh)
        except Unreachable as error:
            return Deferred(error.why, error.reply, error.counts)
        except Closing:
            return GivenBack("stopping")
        try:
            return await _Transaction(pool, wire, mail, boot_clock, late, step, late_reply).run(permit)
        except _Stale:
            wire.abort()
            fresh = True
        except BaseException:
            wire.abort()
            raise


@dataclass(slots=True, eq=False)
class _Transaction:
    """One mail on one connection; the fields are the arguments of `attempt`."""

    pool: Pool
    wire: Wire
    mail: Outgoing
    boot_clock: Callable[[], float]
    late: float
    step: Step | None
    late_reply: Callable[[Reply], None] | None

    async def run(self, permit: Permit) -> Outcome:
        """Goes through the steps in their order."""
        try:
            *commands, body = await beside(self.mail.size, self.mail.fit, self.wire.offers)
        except Unfit as error:
            self.pool.release(self.wire)
            return Bounced(error.why, stage="local")
        refused = await self._announce(commands) or await self._give(body)
        if refused is not None:
            return refused
        if self.step is not None:
            await self.step("body.sent")
        asked = self.boot_clock()
        why_not = await permit()
        if why_not is not None:
            return self._hang_up(GivenBack(why_not))
        if self.step is not None:
            await self.step("permit.committed")
        return await self._finish(asked)

    async def _announce(self, commands: list[bytes]) -> Outcome | None:
        """Says MAIL, RCPT and DATA; returns an outcome where one of them was refused."""
        groups = [(b"".join(commands), 3)] if self.wire.offers.pipelining else [(command, 1) for command in commands]
        replies: list[Reply] = []
        seconds = self.pool.smarthost.command_timeout
        try:
            for data, count in groups:
                async with asyncio.timeout(seconds):
                    for future in self.wire.ask(data, count):
                        replies.append(await future)  # noqa: PERF401 - those before a lost one count
                if not _agreed(replies):
                    break
        except Lost as error:
            if self._stale(replies):
                raise _Stale from None
            return self._hang_up(_refusal(replies) or _lost(error))
        except TimeoutError:
            stage = STAGES[len(replies)].upper()
            return self._hang_up(_refusal(replies) or Deferred(f"no reply to {stage} within {seconds:g} s"))
        if _agreed(replies):
            return None
        if self._stale(replies):
            raise _Stale
        return self._refused(replies)

    def _stale(self, replies: list[Reply]) -> bool:
        """Whether a connection that was kept had already been given up by the smarthost when we spoke."""
        return self.wire.uses > 0 and (not replies or replies[0].code in {CLOSING, *OF_THE_SESSION})

    def _refused(self, replies: list[Reply]) -> Outcome:
        outcome = _refusal(replies)
        if outcome is None:
            stage, reply = _first_no(replies)
            return self._hang_up(Deferred(f"out of step: {reply.code} to {stage.upper()}", reply))
        if any(reply.code in {GO_ON, CLOSING} for reply in replies):  # it waits for a body that nobody has, or closes
            return self._hang_up(outcome)
        if _first_no(replies)[1].code in OF_THE_SESSION:
            return self._hang_up(outcome)
        self.pool.release(self.wire, reset=True)
        return outcome

    async def _give(self, body: bytes) -> Outcome | None:
        """Writes the body; returns an outcome where it could not be given, or where something was said meanwhile."""
        seconds = self.pool.smarthost.command_timeout
        try:
            async with asyncio.timeout(seconds + len(body) / LEAST_RATE):
                await self.wire.body(body, seconds)
        except Lost as error:
            return self._hang_up(_lost(error))
        except TimeoutError:
            return self._hang_up(Deferred("the body was not taken in time"))
        return None

    async def _finish(self, asked: float) -> Outcome:
        """Sends the dot, if it is not too late, and says what came back."""
        try:
            await self.wire.hear()
            if self.boot_clock() - asked > self.late:
                return self._hang_up(GivenBack("late"))
            future = self.wire.dot()  # no await between the look at the clock and this
        except Lost as error:
            return self._hang_up(_lost(error))
        if self.step is not None:
            await self.step("dot.sent")
        done, _ = await asyncio.wait([future], timeout=self.pool.smarthost.reply_timeout)
        if not done:
            return self._overdue(future)
        try:
            reply = future.result()
        except Lost as error:
            return self._hang_up(Unknown(error.why))
        if self.step is not None:
            await self.step("reply.read")
        return self._settled(reply)

    def _settled(self, reply: Reply) -> Outcome:
        outcome = verdict(reply, "dot")
        if isinstance(outcome, Unknown) or reply.code == CLOSING:
            return self._hang_up(outcome)
        self.pool.release(self.wire)
        return outcome

    def _overdue(self, future: asyncio.Future[Reply]) -> Outcome:
        """Leaves the line open for a reply that is late, where somebody wants to hear it."""
        outcome = Unknown(f"no reply to the dot within {self.pool.smarthost.reply_timeout:g} s")
        if self.late_reply is None:
            return self._hang_up(outcome)
        hear, wire = self.late_reply, self.wire

        def came(late: asyncio.Future[Reply]) -> None:
            if not late.cancelled() and late.exception() is None:
                hear(late.result())
            wire.abort()

        future.add_done_callback(came)
        self.pool.linger(wire)
        return outcome

    def _hang_up(self, outcome: Outcome) -> Outcome:
        self.wire.abort()
        return outcome


def verdict(reply: Reply, stage: str) -> Relayed | Deferred | Bounced | Unknown:
    """Returns what a reply to this stage ("mail", "rcpt", "data", "dot") says of the mail; RFC 5321, 4.2.1.

    Only the dot can be answered by Relayed; a code that answers nothing is Unknown. A 5yz before it that is a fault of the
    session defers, as does all that fails before MAIL: another session, or another setting, may do.
    """
    why = f"{reply.code} to {stage.upper()}"
    match reply.code // 100:
        case 2 if stage == "dot":
            return Relayed(reply)
        case 4:
            return Deferred(why, reply)
        case 5 if stage != "dot" and reply.code in OF_THE_SESSION:
            return Deferred(why, reply)
        case 5:
            return Bounced(why, reply, stage)
        case _:
            return Unknown(why)


def _first_no(replies: list[Reply]) -> tuple[str, Reply]:
    """Returns the first reply to MAIL, RCPT and DATA that does not say to go on, and its stage; "" where all do."""
    for stage, reply in zip(STAGES, replies, strict=False):
        if reply.code != GO_ON if stage == "data" else reply.code // 100 != 2:  # noqa: PLR2004
            return stage, reply
    return "", Reply(0)


def _agreed(replies: list[Reply]) -> bool:
    """Whether all replies so far to MAIL, RCPT and DATA say to go on."""
    return not _first_no(replies)[0]


def _refusal(replies: list[Reply]) -> Deferred | Bounced | None:
    """Returns what the first no among the replies to MAIL, RCPT and DATA says; None where there is none or it says nothing.

    What is said after an answer out of step (354 to RCPT, and 503 to the pipelined DATA) is not about the mail.
    """
    stage, reply = _first_no(replies)
    said = verdict(reply, stage) if stage else None
    return said if isinstance(said, Deferred | Bounced) else None


def _lost(error: Lost) -> Deferred:
    """Returns the outcome of a line that died before the dot: no dot has left, so it is plain."""
    return Deferred(error.why, error.reply)
