"""`POST /v1/agent/register`: an agent enters the registry, or is refreshed by its name, and may take the calling key."""

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import AfterValidator, Field

from gateway.doors.auth import Grant
from gateway.doors.fields import Metadata, Name, Shape, Words, fault
from gateway.doors.http.described import PROBLEMS, takes
from gateway.doors.http.inlet import Needs, context_of, take
from gateway.doors.http.keys import shown
from gateway.doors.http.problems import reply
from gateway.store import agent_config
from gateway.store.agents import Register
from gateway.store.writer import Rank

router = APIRouter(tags=["coordination"], responses=PROBLEMS)
Writing = Annotated[Grant, Depends(Needs("send"))]

_LIKE_AN_ID = re.compile(r"agent_[0-9a-f]+", re.IGNORECASE)


def agent_name(name: str) -> str:
    """Ids and names name agents in the same places: a name that looks like an id could pass for another agent."""
    if _LIKE_AN_ID.fullmatch(name):
        raise fault("looks like the id of an agent")
    if name != name.strip():
        raise fault("begins or ends with a blank")
    return name


AgentName = Annotated[Name, AfterValidator(agent_name)]


class Registration(Shape):
    """An agent to register."""

    agent_name: AgentName = Field(description="Unique in the tenant; the agent of that name is refreshed.")
    agent_role: Name = "general"
    bind_key: bool = Field(
        default=False, description="Let the calling key act as this agent, until an operator changes that."
    )
    owner: Words | None = Field(None, description="Who answers for the agent; without it, as it was.")
    metadata: Metadata = Field(default={}, description="Kept with the agent.")


@router.post("/v1/agent/register", openapi_extra=takes(Registration))
async def register_agent(request: Request, grant: Writing) -> Response:
    """Register an agent or refresh the one of that name; `apiKeyBinding` says what became of the calling key.

    An agent that acts by a key of its own is refreshed by such a key or by an operator's; another key changes nothing of it,
    and `refreshed` is false.
    """
    asked = await take(request, Registration, grant)
    context = context_of(request)
    wish = Register(
        grant.tenant,
        asked.agent_name,
        asked.agent_role,
        dict(asked.metadata),
        grant.key_id,
        asked.bind_key,
        "operator" in grant.scopes,
    )
    try:
        done = await context.writer.do(Rank.LEASE, (grant.tenant,), agent_config.register, (wish, asked.owner))
    finally:
        if asked.bind_key:
            context.auth.forget()
    body = shown(done.agent, grant.tenant) | {"apiKeyBinding": done.binding}
    body |= {} if done.refreshed else {"refreshed": False}
    return reply(body if done.bound_to is None else body | {"boundToAgentId": done.bound_to})
