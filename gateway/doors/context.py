"""What a process gives to its doors and rooms: settings, store, the ways in, and how to wait for a relay attempt."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from fastapi import APIRouter

from gateway.core.record import Record
from gateway.core.verdict import Reason
from gateway.doors.auth import Authenticator, Grant
from gateway.intake.intake import Intake
from gateway.settings import Settings
from gateway.store import Store
from gateway.store.guarded import Asked, guarded
from gateway.store.tx import Tx
from gateway.store.writer import Rank, Writer

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")

WaitFor = Callable[[str, str, float], Awaitable[Record | None]]
"""Takes tenant, request id and seconds; returns the record once an attempt has been made, or as it is when time is up."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a route may use.

    `routers` are those of the rooms, `parts` what rooms keep for the life of the process, by type; `body_seconds` is the
    time that a whole request body may take; `reasons` are all that can stand in a mail's way.
    """

    settings: Settings
    store: Store
    writer: Writer
    intake: Intake
    auth: Authenticator
    wait_for: WaitFor
    routers: tuple[APIRouter, ...] = ()
    body_seconds: float = 30.0
    parts: Mapping[type[Any], Any] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()

    def part(self, kind: type[T]) -> T:
        """What a room keeps, of this type."""
        return cast("T", self.parts[kind])

    async def act(self, grant: Grant, work: Callable[[Tx, Sequence[A]], Sequence[R | Exception]], wish: A) -> R:
        """Do what a caller may do only with a key that is still good under the lock (FORBID; store/guarded).

        Raises what the work gave for this wish, KeyGoneError, StoreUnavailableError.
        """
        asked = Asked(grant.tenant, grant.key_id, grant.scopes, wish)
        done: R = await self.writer.do(Rank.FORBID, (grant.tenant,), guarded(work), asked)
        return done

    async def read(self, tenant: str, work: Callable[[Tx], T]) -> T:
        """Run `work` on one state of the store in a thread: the loop never waits for the database.

        Raises StoreUnavailableError.
        """
        return await asyncio.to_thread(self.store.read, work, (tenant,))
