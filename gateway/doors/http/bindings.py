"""As which agent a key acts, changed by an operator: bind it, point it to another agent, let it go.

What waits or is on its way stays with the agent that it was sent as. A free key binds itself when its agent registers.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.errors import NotFoundError
from gateway.doors.answers import of_key
from gateway.doors.auth import ONE_AGENT, Grant, known_agent, with_implied
from gateway.doors.fields import Name, Shape, Words
from gateway.doors.http.controls import person
from gateway.doors.http.described import PROBLEMS, asks, takes
from gateway.doors.http.inlet import Needs, context_of, query, take
from gateway.doors.http.key_reach import KIND, unchanged, within
from gateway.doors.http.problems import reply
from gateway.doors.refusal import HumanRefusal, forbidden, missing
from gateway.store import bindings, keys
from gateway.store.bindings import Bind
from gateway.store.keys import Key
from gateway.store.tx import Tx
from gateway.store.writer import Rank

router = APIRouter(tags=["keys"], responses=PROBLEMS)
Anybody = Annotated[Grant, Depends(Needs(*keys.SCOPES))]

WHY = "Why; it goes into the log of events."


class Binding(Shape):
    """As which agent a key is to act."""

    agent_id: Name | None = Field(None, description="The agent; either this or agentName is needed.")
    agent_name: Name | None = Field(None, description="The same by name.")
    reason: Words | None = Field(None, description=WHY)

    @classmethod
    def clashes(cls, given: dict[str, Any]) -> list[tuple[str, str]]:
        """An agent is named."""
        named = any(given.get(name) is not None for name in ("agentId", "agentName"))
        return [] if named else [("agentName", "either this or agentId is needed")]


class Unbinding(Shape):
    """A key that is to act as no agent."""

    reason: Words | None = Field(None, description=WHY)


@router.post("/v1/agent/keys/{key_id}/bind", openapi_extra=takes(Binding))
async def bind_key(request: Request, key_id: str, grant: Anybody) -> Response:
    """Let a key act as an agent from now on, whatever it acted as before (an operator's key)."""
    asked = await take(request, Binding, grant)

    def read(tx: Tx) -> set[str]:
        named = (asked.agent_id, asked.agent_name)
        return {known_agent(tx, grant.tenant, who).id for who in named if who is not None}

    agent, *others = await context_of(request).read(grant.tenant, read)
    if others:
        raise forbidden("agent_mismatch", "more than one agent is named", nextAction=ONE_AGENT)
    key, changed = await _change(request, grant, key_id, agent, asked.reason)
    return reply(of_key(key) | {"apiKeyBinding": "bound" if changed else "already_bound"})


@router.delete("/v1/agent/keys/{key_id}/bind", openapi_extra=asks(Unbinding))
async def unbind_key(request: Request, key_id: str, grant: Anybody) -> Response:
    """Let a key act as no agent from now on (an operator's key); `unbound` is false where it did not act as one."""
    asked = query(request, Unbinding, grant)
    key, changed = await _change(request, grant, key_id, None, asked.reason)
    return reply(of_key(key) | {"unbound": changed})


async def _change(
    request: Request, grant: Grant, key_id: str, agent: str | None, reason: str | None
) -> tuple[Key, bool]:
    """Carry it out under the lock, where the caller and the key are what they are. Raises Refusal."""

    def may(asker: Key, key: Key) -> None:
        unchanged(grant, asker)
        if not person(grant):
            words = "which agent a key acts as is an operator's to change"
            raise HumanRefusal(words, kind=KIND, about=key.id, loosens=["agent"])
        within(grant, with_implied(key.scopes), key.mailboxes, about=(KIND, key.id))

    if not key_id.isprintable():
        raise missing("key_not_found", "there is no such key")
    context = context_of(request)
    wish = Bind(grant.tenant, key_id, agent, grant.actor, grant.key_id, may, reason)
    try:
        return await context.writer.do(Rank.FORBID, (grant.tenant,), bindings.change, wish)
    except NotFoundError:
        raise missing("key_not_found", "there is no such key") from None
    finally:
        context.auth.forget()
