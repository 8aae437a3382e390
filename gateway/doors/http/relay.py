"""The relay's gate over HTTP: closed, nothing is claimed and no dot is sent; no row of mail changes.

The gate is the whole store's. Where that has several tenants, no tenant's key moves it: the command on the gateway's own
machine does.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from gateway.doors.auth import Grant
from gateway.doors.fields import Shape
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import forbidden
from gateway.store import events, forbid, tenant_settings
from gateway.store.tx import Tx

router = APIRouter(tags=["relay"], responses=PROBLEMS)
Looking = Annotated[Grant, Depends(Needs("read", "send"))]
Deciding = Annotated[Grant, Depends(Needs("operator"))]


class Nobody(Shape):
    """Nothing but, perhaps, whose key it is."""


@router.get("/v1/ops/relay", openapi_extra=asks(Nobody))
async def show_relay(request: Request, grant: Looking) -> Response:
    """Say whether the relay is paused."""
    query(request, Nobody, grant)
    return reply({"paused": await context_of(request).read(grant.tenant, lambda tx: tx.relay_paused())})


@router.post("/v1/ops/relay/pause", openapi_extra=takes(Nobody, optional=True))
async def pause_relay(request: Request, grant: Deciding) -> Response:
    """Close the relay for the whole gateway: mail is taken and waits; what has its permit still ends."""
    return await _set(request, grant, paused=True)


@router.post("/v1/ops/relay/resume", openapi_extra=takes(Nobody, optional=True))
async def resume_relay(request: Request, grant: Deciding) -> Response:
    """Open the relay again."""
    return await _set(request, grant, paused=False)


async def _set(request: Request, grant: Grant, *, paused: bool) -> Response:
    await take(request, Nobody, grant, optional=True)
    context = context_of(request)
    if await context.read(grant.tenant, tenant_settings.several_tenants):
        raise forbidden("relay_is_shared", "other tenants share the relay; use the command on the gateway's machine")
    wish = (grant.tenant, grant.actor, paused)
    await context.act(grant, _set_gate, wish)
    return reply({"paused": paused})


def _set_gate(tx: Tx, wishes: Sequence[tuple[str, str, bool]]) -> list[None]:
    for tenant, actor, paused in wishes:
        forbid.pause_relay(tx, paused=paused)
        events.append(tx, [events.Event(tenant, f"relay.{'paused' if paused else 'resumed'}", actor=actor)])
    return [None for _ in wishes]
