"""How much of its limits a tenant, an agent or a mailbox has used up, in the running hour, day and month (UTC)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from gateway.core.facts import UsageAsk
from gateway.core.judge import Rule
from gateway.core.record import Document, instant
from gateway.core.verdict import Mode
from gateway.doors import letter
from gateway.doors.auth import Grant, known_agent
from gateway.doors.fields import Name, Shape
from gateway.doors.http.described import PROBLEMS, asks
from gateway.doors.http.inlet import Needs, context_of, query
from gateway.doors.http.problems import reply
from gateway.store import facts
from gateway.store.tx import Tx

router = APIRouter(tags=["requests"], responses=PROBLEMS)
Asking = Annotated[Grant, Depends(Needs("read", "send"))]

WINDOWS = {"hourly": "hour", "daily": "day", "monthly": "month"}


class Whose(Shape):
    """Whose use is told beside the tenant's."""

    agent: Name | None = Field(None, description="An agent, by id or name.")
    mailbox_id: Name | None = None


class Nobody(Shape):
    """Nothing is asked for by name."""


@router.get("/v1/agent/budget", openapi_extra=asks(Whose))
async def show_budget(request: Request, grant: Asking) -> Response:
    """Tell how many recipients were written to in each window, of how many that may be, and when it begins anew.

    At the top the tenant's; `agent` and `mailbox` hold those that were asked for. Where there is no limit nothing is counted
    either: then `used`, `limit` and `remaining` are `null`. `enforced` is false where the limit is only observed.
    """
    asked = query(request, Whose, grant)
    box = None if asked.mailbox_id is None else letter.mailbox(grant, None, asked.mailbox_id)
    rule = next((one for one in context_of(request).intake.rules if one.name == "quota"), None)

    def read(tx: Tx) -> Document:
        body: Document = {"tenantId": grant.tenant, **_windows(tx, grant.tenant, rule, "tenant", grant.tenant)}
        if asked.agent is not None:
            agent = known_agent(tx, grant.tenant, asked.agent)
            used = _windows(tx, grant.tenant, rule, "agent", agent.id)
            body["agent"] = {"id": agent.id, "name": agent.name, **used}
        if box is not None:
            used = _windows(tx, grant.tenant, rule, "mailbox", box.id)
            body["mailbox"] = {"id": box.id, "address": box.address, **used}
        return body | {"timestamp": instant(tx.now)}

    return reply(await context_of(request).read(grant.tenant, read))


@router.get("/v1/agent/reasons", openapi_extra=asks(Nobody))
async def list_reasons(request: Request, grant: Asking) -> Response:
    """List every reason that can stand in a mail's way: what it says and means, and what to do then."""
    query(request, Nobody, grant)
    return reply(
        [
            {
                "reason": one.slug,
                "verdict": one.verdict.name.lower(),
                "detail": one.text,
                "nextAction": one.next,
                "smtp": f"{one.code} {one.enhanced}",
                "strictStatus": one.strict,
            }
            for one in context_of(request).reasons
        ]
    )


def _windows(tx: Tx, tenant: str, rule: Rule | None, scope: str, who: str) -> Document:
    """Use and limit of one of them, by window."""
    limits = {window: _limit(rule, scope, window) for window in WINDOWS.values()}
    usage = facts.load(tx, tenant, [UsageAsk(scope, who, window) for window in WINDOWS.values()])
    body: Document = {}
    for name, window in WINDOWS.items():
        limit, known = limits[window], usage[UsageAsk(scope, who, window)]
        body[name] = {
            "used": known.used if limit else None,
            "limit": limit or None,
            "remaining": max(0, limit - known.used) if limit else None,
            "resetsAt": instant(known.resets_at),
        }
        if limit and rule is not None:
            body[name]["enforced"] = rule.mode is Mode.ENFORCE
    return body


def _limit(rule: Rule | None, scope: str, window: str) -> int:
    """The limit that the policy's options set, in recipients; 0 for none."""
    if rule is None or rule.mode is Mode.OFF:
        return 0
    return int(getattr(rule.policy, f"{scope}_{window}", 0))
