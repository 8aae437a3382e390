"""A FastAPI endpoint that reads the model of `request-send` and does nothing: what the framework itself costs."""

import sys

import uvicorn
from fastapi import FastAPI

from gateway.doors.asked import SendRequest

app = FastAPI()


@app.post("/noop")
async def noop(body: SendRequest) -> dict[str, str]:
    """Answer that the model was read."""
    return {"status": "queued", "key": body.idempotency_key or ""}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
