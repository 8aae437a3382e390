"""FastAPI endpoints that read the models of `request-send` and of a lease and do nothing: what the framework itself costs."""

import sys
from datetime import UTC, datetime

import uvicorn
from fastapi import FastAPI, Request

from gateway.coordination.leases import Wanted
from gateway.core.address import KeyRules
from gateway.doors.asked import SendRequest
from gateway.doors.fields import Reader

app = FastAPI()
RULES = KeyRules()


@app.post("/noop")
async def noop(request: Request) -> dict[str, str]:
    """Read the body as JSON into the model and say that it was read."""
    reader = Reader(RULES, frozenset(), frozenset(), datetime.now(UTC))
    body = SendRequest.model_validate(await request.json(), context=reader)
    return {"status": "queued", "key": body.idempotency_key or ""}


@app.post("/lease")
async def lease(request: Request) -> dict[str, str]:
    """The same for the body of an acquisition."""
    reader = Reader(RULES, frozenset(), frozenset(), datetime.now(UTC))
    body = Wanted.model_validate(await request.json(), context=reader)
    return {"id": body.contact_email.key}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
