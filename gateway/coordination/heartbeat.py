"""`POST /v1/agent/coordination/heartbeat`: an agent says that it is there. Leases do not depend on it (SEMANTICS 6)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.doors.auth import Grant
from gateway.doors.fields import Name, Shape
from gateway.doors.http.described import PROBLEMS, takes
from gateway.doors.http.inlet import Needs, agent_of, context_of, take
from gateway.doors.http.problems import reply
from gateway.doors.refusal import Faults
from gateway.store import heartbeats
from gateway.store.writer import Rank

router = APIRouter(tags=["coordination"], responses=PROBLEMS)
Writing = Annotated[Grant, Depends(Needs("send"))]


class Beat(Shape):
    """Which agent is there."""

    agent_id: Name | None = Field(None, description="The agent that is there; a bound key's own without it.")
    agent_name: Name | None = Field(None, description="The same by name.")


@router.post("/v1/agent/coordination/heartbeat", openapi_extra=takes(Beat, optional=True))
async def heartbeat(request: Request, grant: Writing) -> Response:
    """Mark an agent as active from now on."""
    asked = await take(request, Beat, grant, optional=True)
    named = [who for who in (asked.agent_id, asked.agent_name) if who is not None]
    agent = await agent_of(request, grant, named)
    if agent is None:
        raise Faults([("agentName", "an agent is needed: agentName, agentId, or a key that is bound to one")])
    await context_of(request).writer.do(Rank.LEASE, (grant.tenant,), heartbeats.beat, (grant.tenant, agent))
    return reply({"ok": True})
