"""Does what a row says, in a tenant of its own, and says what is not as it is documented."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx

from gateway.core.address import parse
from gateway.store import Store, agents, keys
from gateway.store.keys import NewKey
from gateway.store.tx import Tx
from tests.cli.processes import Up
from tests.coordination.conformance.rows import Cli, Http, Later, Row, Tool, Want, filled
from tests.coordination.conformance.shape import faults
from tests.doors.mcp.client import Served

ALL = ("read", "send", "manage")
SCOPES = {"key": ALL, "other": ALL, "third": ALL, "boxed": ALL, "reader": ("read",), "sender": ("send",)}
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: its keys by name, and what words that begin with `$` stand for."""

    keys: dict[str, str]
    known: dict[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was answered; what a command printed on stdout and stderr."""

    body: Any
    status: int = 200
    out: str = ""
    err: str = ""


def a_tenant(store: Store) -> Tenant:
    """Makes a new tenant with a mailbox, keys and no agent."""
    name = f"tenant_{next(_numbers):06d}"

    def make(tx: Tx) -> Tenant:
        address = parse(f"agent@{name.replace('_', '-')}.example.com")
        box = agents.add_mailbox(tx, name, address, {"may_reply": True})
        reach = {"boxed": (box.id,)}
        wishes = [NewKey(name, one, scopes=scopes, mailboxes=reach.get(one)) for one, scopes in SCOPES.items()]
        made = keys.create_keys(tx, [*wishes, NewKey(name, "operator", scopes=keys.SCOPES)])
        ids = {"tenant": name, "mailbox": box.id, "key_id": made[0][0].id}
        return Tenant({key.label: raw for key, raw in made}, ids)

    store.write((), lambda tx: agents.add_tenant(tx, name))
    return store.write((name,), make)


def wrong(row: Row, seen: Seen, known: dict[str, str]) -> Iterator[str]:
    """What is not as the row says."""
    want: Want = row.want
    if row.ask.door != "mcp" and seen.status != want.status:
        yield f"{row.says} It ended with {seen.status}, not {want.status}: {seen}"
    if want.body is not None:
        for one in faults(filled(want.body, known), seen.body, ours=want.ours, part=want.part):
            yield f"{row.says} {one}: {seen.body or seen}"
    for pattern, text in ((want.out, seen.out), (want.err, seen.err)):
        if re.search(filled(pattern, known), text) is None:
            yield f"{row.says} No {pattern!r} in {text!r}"


def request_of(ask: Http, tenant: Tenant) -> dict[str, Any]:
    """A request's arguments for httpx."""
    headers = dict(ask.headers) | ({"Authorization": f"Bearer {tenant.keys[ask.by]}"} if ask.by else {})
    said: dict[str, Any] = {"method": ask.method, "url": filled(ask.path, tenant.known), "headers": headers}
    said |= {} if ask.body is None else {"json": filled(ask.body, tenant.known)}
    return said | ({"params": filled(ask.query, tenant.known)} if ask.query else {})


def done(step: Http, answer: httpx.Response, tenant: Tenant) -> None:
    """Keeps what a step before has answered; it must have succeeded."""
    assert answer.status_code == step.status, (step, answer.text)
    body = answer.json()
    assert not (isinstance(body, dict) and body.get("conflict")), (step, body)
    tenant.known.update({name: body[member] for name, member in step.keep.items()})


async def at_the_doors(row: Row, served: Served) -> list[str]:
    """What is wrong with a row over HTTP or MCP."""
    tenant = a_tenant(served.door.world.store)
    for step in row.before:
        if isinstance(step, Later):
            served.door.world.advance(step.seconds)
        else:
            done(step, await served.door.client.request(**request_of(step, tenant)), tenant)
    if isinstance(row.ask, Tool):
        seen = Seen(await _told(row.ask, served, tenant))
    else:
        assert isinstance(row.ask, Http)
        answer = await served.door.client.request(**request_of(row.ask, tenant))
        seen = Seen(answer.json(), answer.status_code)
    return list(wrong(row, seen, tenant.known))


async def _told(tool: Tool, served: Served, tenant: Tenant) -> Any:  # noqa: ANN401 - JSON
    import json

    async with served.connect(tenant.keys[tool.by]) as session:
        if "://" not in tool.name:
            return await session.call(tool.name, **filled(tool.given, tenant.known))
        got = await session.client.read_resource(filled(tool.name, tenant.known))
        return json.loads(got.contents[0].text)  # type: ignore[union-attr]


def on_the_command_line(row: Row, running: Up, store: Store) -> list[str]:
    """What is wrong with a row of the command line: its steps before are done over HTTP."""
    tenant = a_tenant(store)
    assert isinstance(row.ask, Cli)
    with httpx.Client(base_url=running.url) as client:
        for step in row.before:
            assert isinstance(step, Http), "time cannot be moved here"
            done(step, client.request(**request_of(step, tenant)), tenant)
    words = shlex.split(filled(row.ask.words, tenant.known))
    as_json = row.want.body is not None
    about = {"GATEWAY_URL": running.url, "GATEWAY_KEY": tenant.keys[row.ask.by]}
    ended = running.house.run(*words, *(["--json"] if as_json else []), env=about)
    seen = Seen(ended.body if as_json and ended.out else None, ended.code, ended.out, ended.err)
    return list(wrong(row, seen, tenant.known))
