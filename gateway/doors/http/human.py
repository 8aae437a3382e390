"""The link for a person: what an agent was refused because only a person may do it is kept, and can be confirmed.

A request that cannot be kept (its body is too large, too many wait, the store does not answer) is refused without a link.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence

from fastapi import Request

from gateway.core.errors import StoreUnavailableError
from gateway.doors.auth import Grant
from gateway.doors.context import Context
from gateway.store import decisions
from gateway.store.decisions import Wish
from gateway.store.writer import Rank

log = logging.getLogger(__name__)

HUMAN = "human_decision_required"
PATH = "/v1/agent/decisions"
GRANT = "gateway.grant"
"""The member of a request's scope that holds the grant of its key."""
BODY = "gateway.body"
"""The member of a request's scope that holds its body, once that was read whole."""
READ = "gateway.read"
"""The member of a request's scope that says that its query was read strictly: what a person is shown there is meant."""
ASKING = "gateway.asking"
"""The member of a request's scope that holds the grant as which it is made, in place of a key: it is made in this process."""
CONFIRMING = "gateway.confirming"
"""The member of a request's scope that says that a person makes it who has confirmed it: it is not kept once more."""
KEPT_MAX = 65_536
"""Bytes of a body that is kept for a person; a larger one is not."""


def meant(request: Request, body: Mapping[str, object]) -> None:
    """Say what a request means where its body leaves to the caller's own key what that is: a person has another one."""
    request.scope[BODY] = json.dumps(body).encode()


async def said(request: Request, kind: str, about: str, loosens: Sequence[str]) -> dict[str, object]:
    """The members of a refusal that only a person can turn, with the link by which a person does."""
    members: dict[str, object] = {"kind": kind, "id": about, "reason": "enforce", "loosens": list(loosens)}
    wish = _wish(request, kind, about, tuple(loosens))
    if wish is None:
        return members
    context: Context = request.scope["app"].state.context
    try:
        kept = await context.writer.do(Rank.FORBID, (wish.tenant,), decisions.keep, wish)
    except StoreUnavailableError:
        log.warning("a wish could not be kept for a person", extra={"kind": kind})
        return members
    return members if kept is None else members | {"decisionId": kept, "decisionUrl": _url(request, kept)}


def _wish(request: Request, kind: str, about: str, loosens: tuple[str, ...]) -> Wish | None:
    """The request as it is kept; `None` where it cannot be."""
    grant: Grant | None = request.scope.get(GRANT)
    body: bytes = request.scope.get(BODY, b"")
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    unread = bool(query) and READ not in request.scope
    if grant is None or CONFIRMING in request.scope or unread or len(body) > KEPT_MAX:
        return None
    if not path.isprintable() or not query.isprintable():
        return None
    text = body.decode()  # it has been read as JSON
    asked = (grant.key_id, request.method, path, query, text)
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
    return Wish(
        grant.tenant, digest, kind, about, loosens, request.method, path, query, text, grant.key_id, grant.actor
    )


def _url(request: Request, decision: str) -> str:
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}{PATH}/{decision}"
