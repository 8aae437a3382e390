"""The commands' way to the gateway: the Python client, its errors as printed words, and the exit code.

Nothing is asked twice by itself: whoever typed a command decides that.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from gateway import profile
from gateway.cli import printing
from gateway.cli.printing import clean, fail, member

if TYPE_CHECKING:
    from gateway.client import Client, GatewayError, Unreachable
    from gateway.client.call import Answer

ANSWER_SECONDS = 30.0
UNAUTHORIZED = 401
TEMPORARY = 500
PLAIN = frozenset({"error", "message", "detail", "title", "type", "status", "instance", "errors"})
"""Members of an error that are printed in their own way, or say nothing new."""


class Api:
    """One gateway, asked over HTTP with one key."""

    def __init__(self, url: str | None, key: str | None, *, as_json: bool = False) -> None:
        """Take URL and key from options or the profile; ends the command with code 2 where one is missing or wrong."""
        from gateway.client.errors import NotSetUp
        from gateway.client.where import find

        try:
            self._place = find(url, key)
        except NotSetUp as error:
            if error.where == "url":
                raise typer.BadParameter(error.message, param_hint="--url") from None
            fail(error.message, 2)
        for words in self._place.warnings:
            printing.note(f"warning: {words}")
        self.url = self._place.url
        self._key = self._place.key
        self._json = as_json
        self._client: Client | None = None

    @contextlib.contextmanager
    def kept(self) -> "Iterator[Client]":
        """Ask over one connection for as long as this lasts."""
        from gateway.client import Client

        with Client(self._place, retries=0) as client:
            self._client = client
            try:
                yield client
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
    ) -> "Answer":
        """Ask and return the answer; an error ends the command with code 1 after it was printed.

        `seconds` is how long an answer may take; `retry` is a sentence for the case that the outcome is not known. Who is
        `patient` waits where the gateway says that there were too many requests: nothing was done then.
        """
        from gateway.client.call import Call, plain

        more, given = seconds - ANSWER_SECONDS, headers or {}
        call = Call(method, path, plain, body, query or {}, given, wait=more, patient=patient, again=False)
        with self.reaching(retry) as client:
            return client.answer(call)

    def lines(
        self, path: str, *, body: object, headers: dict[str, str], seconds: float = ANSWER_SECONDS, retry: str = ""
    ) -> Iterator[Any]:
        """Post, and yield the answer's lines as they come; errors, `seconds` and `retry` as for `ask`.

        Waits where the gateway says that there were too many requests.
        """
        from gateway.client.call import LINES, Call, plain

        more = seconds - ANSWER_SECONDS
        call = Call("POST", path, plain, body, {}, headers, LINES, wait=more, patient=True, again=False)
        with self.reaching(retry) as client:
            yield from client.lines(call)

    @contextlib.contextmanager
    def reaching(self, retry: str = "") -> "Iterator[Client]":
        """A client to ask with; what goes wrong ends the command with printed words."""
        from gateway.client.errors import GatewayError, NotAGateway, NotSetUp, Unreachable

        try:
            with contextlib.nullcontext(self._client) if self._client else self.kept() as client:
                yield client
        except NotSetUp as error:
            fail(error.message, 2)
        except Unreachable as error:
            fail(self._missed(error, retry))
        except NotAGateway as error:
            fail(f"{self.url}: {error.message}")
        except GatewayError as error:
            self._refuse(error, retry)

    def _missed(self, error: "Unreachable", retry: str) -> str:
        from gateway.client.line import NO_TLS

        cause = clean(error.cause)
        if error.cause == NO_TLS:
            return f"{self.url}: {cause}; is it http:// there?"
        if error.way == "unreached" and self.url.startswith("https:"):
            return f"no gateway answers at {self.url} ({cause}); look at the URL, and at what ends TLS there"
        if error.way == "unreached":
            return f"no gateway answers at {self.url} ({cause}); start one with `gateway serve`, or give --url"
        if error.way == "late":
            return f"{self.url} gave no answer within {cause}; {retry or 'ask again later'}"
        return f"the connection to {self.url} broke ({cause}); {retry or 'ask again'}"

    def _refuse(self, error: "GatewayError", retry: str) -> None:
        from gateway.client.errors import Invalid

        body = error.body
        if self._json:
            printing.document(body)
        words = member(body, "message") or member(body, "detail") or error.message
        for name, value in body.items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            if name not in PLAIN and isinstance(shown, str | int | float):
                words = f"{words}; {name}: {shown}"
        for field, why in error.errors.items() if isinstance(error, Invalid) else ():
            printing.note(f"  {field}: {why}")
        decision = member(body, "decisionId")
        if decision:
            printing.note(f"a person may allow it: gateway decisions show {clean(decision)}, then confirm or reject it")
        if error.status == UNAUTHORIZED:
            given = "--key" if profile.is_chosen() else "--key, GATEWAY_KEY"
            words = f"{words}; check {given} and {profile.place()}"
        if error.status >= TEMPORARY and retry:
            words = f"{words}; {retry}"
        fail(f"{error.status} {member(body, 'error') or ''}: {words}" if error.status else words)


def part(text: str) -> str:
    """An id as one part of a path, as the client writes it: "." and ".." are ids like others."""
    from gateway.client.mail import part as written

    return written(text)


def agent_header(agent: str | None) -> dict[str, str]:
    """The header that names the agent of a key without one."""
    if agent is None:
        return {}
    if not agent.isascii() or not agent.isprintable():
        raise typer.BadParameter("must be an id, or a name in ASCII", param_hint="--agent")
    return {"X-Agent-Id": agent}
