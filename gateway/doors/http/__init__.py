"""The HTTP door: a FastAPI application that turns requests into submissions and decisions into answers.

`guard` stands around it, `inlet` takes what comes in, `problems` says no; the routes are in the other files and in the
rooms.
"""

from fastapi import FastAPI

from gateway.doors.context import Context
from gateway.doors.http import (
    attachments,
    batches,
    bindings,
    budget,
    consent,
    contacts,
    decisions,
    finding,
    keys,
    mailboxes,
    pages,
    problems,
    relay,
    requests,
    sends,
    suppressed_domains,
    suppression_lists,
    suppressions,
    templates,
    tenant_settings,
)
from gateway.doors.http.described import document
from gateway.doors.http.guard import Guard

__all__ = ["create_app"]

PEOPLE = (suppressed_domains.router, suppression_lists.router, contacts.router, consent.router)
MATERIALS = (templates.router, attachments.router)
OWN = (mailboxes.router, tenant_settings.router, relay.router, decisions.router)


def create_app(context: Context) -> FastAPI:
    """Put the door together: its own routes, those of the rooms, and what stands around them."""
    app = FastAPI(title="Agent mail gateway", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.context = context
    app.state.readiness = pages.Readiness()
    app.router.routes.append(sends.direct)
    for router in (
        sends.router,
        batches.router,
        finding.router,
        budget.router,
        requests.router,
        suppressions.router,
        *PEOPLE,
        *MATERIALS,
        keys.router,
        bindings.router,
        *OWN,
        *context.routers,
        pages.router,
    ):
        app.router.routes.extend(router.routes)
    problems.install(app)
    app.add_middleware(Guard, hosts=context.settings.hosts())
    app.openapi = lambda: document(app)  # type: ignore[method-assign]  # FastAPI's own way to replace it
    return app
