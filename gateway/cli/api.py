"""The HTTP client of the commands: finds the gateway and the key, asks, and says in plain words what went wrong.

A key of the profile goes only to the gateway that it was made for. Nothing is asked twice by itself.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import typer

from gateway.cli import printing, profile
from gateway.cli.printing import clean, fail, member

if TYPE_CHECKING:
    import httpx

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
DEFAULT_URL = "http://127.0.0.1:8080"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
UNAUTHORIZED = 401
TOO_MANY = 429
LINES = "application/x-ndjson"
PATIENCE_SECONDS = 60.0
"""The longest wait before something is asked again that was put off."""
TEMPORARY = 500
PLAIN = frozenset(
    {"error", "message", "detail", "title", "type", "status", "statusCode", "instance", "errors", "fields"}
)
"""Members of an error that are printed in their own way, or say nothing new."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateway answered: status code, decoded JSON, and whether it replayed an earlier receipt."""

    status: int
    body: Any
    replayed: bool = False


class Api:
    """One gateway, asked over HTTP with one key."""

    def __init__(self, url: str | None, key: str | None, *, as_json: bool = False) -> None:
        """Take URL and key from options or the profile; ends the command with code 2 where one is missing or wrong."""
        try:
            known = profile.read() if url is None or key is None else None
        except ValueError as error:
            fail(error, 2)
        if known is not None and profile.shared():
            printing.note(f"warning: others may read {profile.place()}: run chmod 600 on it")
        self.url = (url or (known.url if known else DEFAULT_URL)).rstrip("/")
        parts = _parts(self.url)
        if key is None and known is not None and _belongs(parts, urlsplit(known.url)):
            key = known.key
        if key is None:
            where = f"the profile {profile.place()} is for another gateway" if known else "there is no profile"
            fail(f"no API key for {self.url}: {where}; give --key or GATEWAY_KEY, or run `gateway init`", 2)
        if not key.isascii() or not key.isprintable() or " " in key:
            fail("the API key holds characters that no key has", 2)
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            printing.note(f"warning: the key goes to {parts.hostname} without TLS")
        self._key = key
        self._trust = parts.hostname not in LOOPBACK  # a proxy of the environment is no way to one's own machine
        self._json = as_json
        self._client: httpx.Client | None = None

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Ask over one connection for as long as this lasts."""
        import httpx

        with httpx.Client(trust_env=self._trust) as client:
            self._client = client
            try:
                yield
            finally:
                self._client = None

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
        retry: str = "",
        patient: bool = False,
    ) -> Answer:
        """Ask and return the answer; an error ends the command with code 1 after it was printed.

        `seconds` is how long an answer may take; `retry` is a sentence for the case that the outcome is not known. Who is
        `patient` waits where the gateway says that there were too many requests: nothing was done then.
        """
        import httpx

        given = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"} | (headers or {})
        limits = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        with self._reaching(seconds, retry) as client:
            while True:
                response = client.request(
                    method, self.url + path, json=body, params=query, headers=given, timeout=limits
                )
                if not patient or response.status_code != TOO_MANY:
                    break
                time.sleep(_seconds(response.headers.get("retry-after", "")))
        return self._judged(response, retry)

    def lines(
        self, path: str, *, body: object, headers: dict[str, str], seconds: float = ANSWER_SECONDS, retry: str = ""
    ) -> Iterator[Any]:
        """Post, and yield the answer's lines as they come; errors, `seconds` and `retry` as for `ask`.

        Waits where the gateway says that there were too many requests.
        """
        import httpx

        given = {"Authorization": f"Bearer {self._key}", "Accept": LINES} | headers
        limits = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        with self._reaching(seconds, retry) as client:
            while True:
                with client.stream("POST", self.url + path, json=body, headers=given, timeout=limits) as response:
                    if response.status_code == TOO_MANY:
                        response.read()
                        time.sleep(_seconds(response.headers.get("retry-after", "")))
                        continue
                    if not response.headers.get("content-type", "").startswith(LINES):
                        response.read()
                        yield self._judged(response, retry).body
                        return
                    yield from map(json.loads, response.iter_lines())
                    return

    @contextlib.contextmanager
    def _reaching(self, seconds: float, retry: str) -> Iterator["httpx.Client"]:
        """A client to ask with; what goes wrong on the way ends the command."""
        import httpx

        try:
            with contextlib.nullcontext() if self._client else self.kept():
                assert self._client is not None  # noqa: S101  (for the type checker)
                yield self._client
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            fail(f"no gateway answers at {self.url} ({_cause(error)}); start one with `gateway serve`, or give --url")
        except httpx.TimeoutException:
            fail(" ".join([f"{self.url} gave no answer within {seconds:g} s;", retry or "ask again later"]))
        except httpx.InvalidURL:
            fail(f"{self.url} is not a URL", 2)
        except httpx.HTTPError as error:
            fail(" ".join([f"the connection to {self.url} broke ({_cause(error)});", retry or "ask again"]))

    def _judged(self, response: "httpx.Response", retry: str) -> Answer:
        try:
            body = response.json()
        except ValueError:
            kind = clean(response.headers.get("content-type", "no content type"))[:60]
            fail(f"{self.url} answered {response.status_code} with {kind}, not with JSON: is it a gateway?")
        replayed = response.headers.get("idempotent-replayed") == "true"
        answer = Answer(response.status_code, body, replayed)
        if not response.is_success:
            self._refuse(answer, retry)
        return answer

    def _refuse(self, answer: Answer, retry: str) -> None:
        if self._json:
            printing.document(answer.body)
        body = answer.body if isinstance(answer.body, dict) else {}
        words = member(body, "message") or member(body, "detail") or "refused"
        for name, value in body.items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            if name not in PLAIN and isinstance(shown, str | int | float):
                words = f"{words}; {name}: {shown}"
        for field in _fields(body):
            printing.note(f"  {field}")
        if answer.status == UNAUTHORIZED:
            words = f"{words}; check --key, GATEWAY_KEY and {profile.place()}"
        if answer.status >= TEMPORARY and retry:
            words = f"{words}; {retry}"
        fail(f"{answer.status} {member(body, 'error') or ''}: {words}")


def _seconds(said: str) -> float:
    """How long to wait by the header Retry-After: at least a second where it says nothing, never for ever."""
    return min(float(said), PATIENCE_SECONDS) if said.isascii() and said.isdecimal() else 1.0


def _fields(body: dict[str, Any]) -> list[str]:
    """The wrong fields that an error names, one line each."""
    named = body.get("errors") or body.get("fields") or []
    if isinstance(named, dict):
        return [f"{name}: {clean(why)}" for name, why in named.items()]
    lines = []
    for one in named if isinstance(named, list) else []:
        where, why = member(one, "field"), member(one, "message") or member(one, "why")
        lines.append(f"{where}: {why}" if where else clean(one))
    return lines


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
        parts = SplitResult("", "", "", "", "")
    if wrong or parts.query or parts.fragment or parts.username:
        raise typer.BadParameter("must be a URL like http://127.0.0.1:8080", param_hint="--url")
    return parts


def _belongs(asked: SplitResult, own: SplitResult) -> bool:
    """Whether the profile's key may go there: to the same place, or from one loopback port to another."""
    if asked.hostname in LOOPBACK and own.hostname in LOOPBACK:
        return True
    return (asked.scheme, asked.netloc.lower()) == (own.scheme, own.netloc.lower())


def _cause(error: Exception) -> str:
    """The system's word for what went wrong, without the library's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else clean(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return clean(error) or type(error).__name__


def agent_header(agent: str | None) -> dict[str, str]:
    """The header that names the agent of a key without one."""
    if agent is None:
        return {}
    if not agent.isascii() or not agent.isprintable():
        raise typer.BadParameter("must be an id, or a name in ASCII", param_hint="--agent")
    return {"X-Agent-Id": agent}
