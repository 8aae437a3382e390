"""The Python client: `Client` blocks, `AsyncClient` is awaited; both ask a gateway over HTTP and import nothing of the server.

Requests are values (`calls`, `granting`), answers are judged in one place (`call`, `errors`, `shapes`, `granted`), and both
clients carry them out.
"""

from gateway.client.blocking import Client
from gateway.client.errors import (
    AgentBoundToKey,
    AgentMismatch,
    Conflict,
    ConsensusClosed,
    Cooldown,
    Forbidden,
    GatewayError,
    Held,
    HumanDecisionRequired,
    Invalid,
    KeyReused,
    LeaseConflict,
    LeaseExpired,
    LeaseLost,
    LimitExceeded,
    NotAGateway,
    NotFound,
    NotSetUp,
    Refused,
    StaleToken,
    Suppressed,
    TooMany,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from gateway.client.granted import Decision, Invite, Key
from gateway.client.shapes import Event, Lease, Sent
from gateway.client.waiting import AsyncClient

__all__ = [
    "AgentBoundToKey",
    "AgentMismatch",
    "AsyncClient",
    "Client",
    "Conflict",
    "ConsensusClosed",
    "Cooldown",
    "Decision",
    "Event",
    "Forbidden",
    "GatewayError",
    "Held",
    "HumanDecisionRequired",
    "Invalid",
    "Invite",
    "Key",
    "KeyReused",
    "Lease",
    "LeaseConflict",
    "LeaseExpired",
    "LeaseLost",
    "LimitExceeded",
    "NotAGateway",
    "NotFound",
    "NotSetUp",
    "Refused",
    "Sent",
    "StaleToken",
    "Suppressed",
    "TooMany",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
]
