"""The room of events: the log of what happened, as a list and as a stream of Server-Sent Events.

It brings its routes to the HTTP door; what happened is written by the store in the transactions in which it happened.
"""

from gateway.events.hub import Hub
from gateway.events.routes import router

__all__ = ["Hub", "router"]
