"""The room of coordination: the registry of agents, their leases on contacts and their votes, over HTTP (SEMANTICS 6).

It brings its routes to the HTTP door; what a lease means for a mail is judged by the policies.
"""

from fastapi import APIRouter

from gateway.coordination import adopt, config, consensus, heartbeat, leases, register
from gateway.coordination.clock import Clock
from gateway.coordination.queue import Queue

__all__ = ["Clock", "Queue", "router"]


def router() -> APIRouter:
    """All routes of the room."""
    room = APIRouter()
    room.include_router(register.router)
    room.include_router(heartbeat.router)
    room.include_router(leases.router)
    room.include_router(consensus.router)
    room.include_router(config.router)
    room.include_router(adopt.router)
    return room
