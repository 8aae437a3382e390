"""What both clients need of httpx and tenacity: the request as httpx takes it, its errors as ours, when to ask again."""

import os
import random
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import tenacity

from gateway.client.call import Call
from gateway.client.errors import NotSetUp, TooMany, Unavailable, Unreachable
from gateway.client.where import Place

CONNECT_SECONDS = 5.0
PATIENCE = 60.0
"""The longest that is waited before something is asked again, in seconds."""
AGAIN = frozenset({502, 503})
NO_TLS = "what answers there does not speak TLS"
PLAIN = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
"""What OpenSSL calls an answer that is no record of TLS."""
UNREACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


@dataclass(frozen=True, slots=True)
class Line:
    """A gateway's place, the agent as which we ask, how long an answer may take (seconds), how often is asked again."""

    place: Place
    agent: str | None
    timeout: float
    retries: int

    def __post_init__(self) -> None:
        """Raise NotSetUp where a header cannot hold the agent's name."""
        named(self.agent)

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """A request as httpx takes it."""
        headers = {"Accept": call.accept, **call.headers}
        if self.place.key:
            headers["Authorization"] = f"Bearer {self.place.key}"
        agent = call.agent or self.agent
        if agent is not None and "X-Agent-Id" not in headers:
            headers["X-Agent-Id"] = named(agent)
        return {
            "method": call.method,
            "url": self.place.url + call.path,
            "params": dict(call.query) or None,
            "json": call.body,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout + call.wait, connect=min(CONNECT_SECONDS, self.timeout)),
        }

    def failure(self, error: httpx.HTTPError | httpx.InvalidURL, call: Call[Any]) -> Unreachable | NotSetUp:
        """An error of httpx as one of ours."""
        if isinstance(error, httpx.InvalidURL):
            return NotSetUp("url", f"{self.place.url} is not a URL")
        if isinstance(error, UNREACHED):
            return Unreachable("unreached", cause_of(error), url=self.place.url, key=call.key)
        if isinstance(error, httpx.TimeoutException):
            return Unreachable("late", f"{self.timeout + call.wait:g} s", url=self.place.url, key=call.key)
        return Unreachable("broken", cause_of(error), url=self.place.url, key=call.key)

    def policy(self, call: Call[Any], *, once: bool = False) -> dict[str, Any]:
        """When to ask again, as tenacity takes it, for blocking and waiting clients alike; `once`: not at all."""
        return {
            "stop": _stop(call, 0 if once else self.retries),
            "wait": _wait,
            "retry": tenacity.retry_if_exception(_again(call)),
            "reraise": True,
        }


def named(agent: str | None) -> str:
    """An agent as a header can name it. Raises NotSetUp."""
    if agent is not None and (not agent.isascii() or not agent.isprintable()):
        raise NotSetUp("agent", "an agent is named by its id, or by a name in ASCII")
    return agent or ""


def cause_of(error: Exception) -> str:
    """The system's word for what went wrong, without the library's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):  # its number is OpenSSL's, and none of the system's
            return _of_tls(cause)
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return NO_TLS if error.reason in PLAIN else f"TLS: {(error.reason or 'ended early').replace('_', ' ').lower()}"


def _again(call: Call[Any]) -> Callable[[BaseException], bool]:
    def act(error: BaseException) -> bool:
        if isinstance(error, TooMany):
            return call.patient or (error.retry_after or 0) <= PATIENCE
        if isinstance(error, Unreachable):
            return call.again or not error.uncertain
        return isinstance(error, Unavailable) and call.again and error.status in AGAIN

    return act


def _stop(call: Call[Any], retries: int) -> Callable[[tenacity.RetryCallState], bool]:
    def act(state: tenacity.RetryCallState) -> bool:
        error = None if state.outcome is None else state.outcome.exception()
        return not (call.patient and isinstance(error, TooMany)) and state.attempt_number > retries

    return act


_backoff = tenacity.wait_random_exponential(multiplier=0.25, max=8)


def _wait(state: tenacity.RetryCallState) -> float:
    """As long as the gateway says, and a little more, so that not all come back at once; else longer each time."""
    error = None if state.outcome is None else state.outcome.exception()
    said = getattr(error, "retry_after", None)
    if said is None and isinstance(error, TooMany):
        said = 1.0
    return _backoff(state) if said is None else min(said, PATIENCE) + random.uniform(0, 0.25)  # noqa: S311


def content_type(headers: Mapping[str, str]) -> str:
    """The kind of an answer's content."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
