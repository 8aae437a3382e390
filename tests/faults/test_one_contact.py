"""Two agents and a shell script race for one contact: one has it in each round, and every door tells the same of it.

A real gateway. The agents call it over HTTP, each in a thread of its own. The script is one bash that stays: in most rounds it
calls curl, in every tenth the command `gateway agents lease`, whose start takes half a second. Both agents begin later than
the script by chance, within the time that its way takes and a half more, so that each of the three is first now and then.
"""

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any, Protocol

import httpx

from tests import servers
from tests.faults.conftest import Place

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash") or "/bin/bash"
CONTACT = "pat@example.net"
LEASE = "/v1/agent/coordination/lease"
EVERY = 10
"""Of so many rounds the script does one with the command."""
SCRIPT = r"""
while read -r way act what; do
  case "$way $act" in
    "gateway lease") answer=$("$PYTHON" -m gateway agents lease --contact-email "$what" --json) ;;
    "gateway release") answer=$("$PYTHON" -m gateway agents release-lease "$what" --json) ;;
    "curl lease") answer=$(curl -s -H "Authorization: Bearer $GATEWAY_KEY" -H "Content-Type: application/json" \
      -d "{\"contactEmail\": \"$what\"}" "$GATEWAY_URL/v1/agent/coordination/lease") ;;
    "curl release") answer=$(curl -s -H "Authorization: Bearer $GATEWAY_KEY" -X DELETE \
      "$GATEWAY_URL/v1/agent/coordination/lease/$what") ;;
  esac
  echo "$answer" | tr -d '\n'
  echo
done
"""
Answer = dict[str, Any]


class Racer(Protocol):
    """Who takes part: its agent's name and id, and how it takes the contact and gives it back."""

    name: str
    id: str

    def lease(self, late: float) -> Answer:
        """Takes the contact so many seconds after the barrier."""

    def release(self, lease: str) -> Answer:
        """Gives it back."""


@dataclass
class Agent:
    """An agent over HTTP."""

    name: str
    id: str
    http: httpx.Client

    def lease(self, late: float) -> Answer:
        time.sleep(late)
        return dict(self.http.post(LEASE, json={"contactEmail": CONTACT}).json())

    def release(self, lease: str) -> Answer:
        return dict(self.http.delete(f"{LEASE}/{lease}").json())


@dataclass
class Script:
    """A shell script that stays; `way` is how it calls the gateway: curl, or the command."""

    name: str
    id: str
    process: "subprocess.Popen[str]"
    way: str = "curl"

    def lease(self, late: float) -> Answer:
        return self._told("lease", CONTACT)

    def release(self, lease: str) -> Answer:
        return self._told("release", lease)

    def _told(self, act: str, what: str) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{self.way} {act} {what}\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))


@dataclass
class Race:
    """A gateway, three racers, an operator who looks; `token` and `since` are those of the last round."""

    url: str
    key: str
    operator: httpx.Client
    racers: list[Racer]
    script: Script
    pool: ThreadPoolExecutor
    dice: random.Random
    token: int = 0
    since: str = ""
    held: Counter[str] = field(default_factory=Counter)
    costs: dict[str, float] = field(default_factory=dict)

    def rehearse(self) -> None:
        """Find out how long each way of the script takes."""
        for self.script.way in ("curl", "gateway") * 3:
            begun = time.monotonic()
            lease = self.script.lease(0)
            took = time.monotonic() - begun
            self.costs[self.script.way] = min(took, self.costs.get(self.script.way, took))
            assert self.script.release(lease["id"]) == {"released": True}
            self.token = lease["fencingToken"]
        self.since = self.events()[-1]["id"]

    def round(self, way: str) -> None:
        """One round: all reach for the contact, one gets it, all doors agree, it gives it back."""
        self.script.way, barrier = way, Barrier(len(self.racers))
        spread = 1.5 * self.costs[way]

        def reach(racer: Racer, late: float) -> Answer:
            barrier.wait(servers.PATIENCE)
            return racer.lease(late)

        lates = [self.dice.uniform(0, spread) for _ in self.racers]
        answers = list(self.pool.map(reach, self.racers, lates))
        got = [(racer, one) for racer, one in zip(self.racers, answers, strict=True) if not one.get("conflict")]
        assert len(got) == 1, answers
        holder, lease = got[0]
        self.told_by_all(holder, lease, [one for one in answers if one is not lease])
        assert holder.release(lease["id"]) == {"released": True}
        self.token, self.held[holder.name] = lease["fencingToken"], self.held[holder.name] + 1

    def told_by_all(self, holder: Racer, lease: Answer, others: list[Answer]) -> None:
        """The holder's answer, those of the others, the lists of both doors and the log say the same."""
        who = {"agentId": holder.id, "agentName": holder.name, "expiresAt": lease["expiresAt"]}
        assert {name: lease[name] for name in who} == who
        assert lease["fencingToken"] == self.token + 1
        for one in others:
            assert one["leaseHolder"] == who | {"kind": "lease"}, one
        listed = self.operator.get(LEASE + "s").json()
        command = servers.run_cli("agents", "leases", "--json", url=self.url, key=self.key)
        assert listed == json.loads(command.stdout) == [lease]
        taken = self.happened("coordination.lease_acquired")
        assert [(one["leaseId"], one["agentId"], one["fencingToken"]) for one in taken] == [
            (lease["id"], holder.id, lease["fencingToken"])
        ]
        given_back = self.happened("coordination.lease_released")
        assert [one["fencingToken"] for one in given_back] == ([self.token] if self.held else [])
        self.since = taken[-1]["id"]

    def happened(self, kind: str) -> list[Answer]:
        """Events of a kind since the last round was decided."""
        return [one for one in self.events() if one["type"] == kind]

    def events(self) -> list[Answer]:
        """What happened to leases since then, as an operator is told."""
        query = {"eventTypes": "coordination.*"} | ({"since": self.since} if self.since else {})
        found = self.operator.get("/v1/agent/events", params=query).json()
        assert found["more"] is False
        return list(found["items"])


@contextmanager
def a_race(place: Place, seed: int) -> Iterator[Race]:
    """A gateway with two agents and a script, each with a key of its own."""
    with servers.serving(place.url, roles="http") as served, ThreadPoolExecutor(3) as pool:
        url = f"http://127.0.0.1:{served.port}"
        with (
            caller(url, place.key) as operator,
            caller(url, key_of(operator)) as one,
            caller(url, key_of(operator)) as two,
        ):
            agents = [Agent(name, registered(http, name), http) for name, http in (("one", one), ("two", two))]
            key = key_of(operator)
            with caller(url, key) as http:
                script = Script("script", registered(http, "script"), shell(url, key))
            racers: list[Racer] = [*agents, script]
            try:
                yield Race(url, place.key, operator, racers, script, pool, random.Random(seed))
            finally:
                script.process.communicate(timeout=servers.PATIENCE)


def caller(url: str, key: str) -> httpx.Client:
    """A client with a key."""
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=servers.PATIENCE)


def key_of(operator: httpx.Client) -> str:
    """A new key."""
    made = operator.post("/v1/agent/keys", json={"label": "racer", "scopes": ["read", "send"]})
    assert made.status_code == 200, made.text
    return str(made.json()["rawKey"])


def registered(http: httpx.Client, name: str) -> str:
    """An agent's id; the key is bound to it."""
    made = http.post("/v1/agent/register", json={"agentName": name, "bindKey": True}).json()
    assert made["apiKeyBinding"] == "bound", made
    return str(made["id"])


def shell(url: str, key: str) -> "subprocess.Popen[str]":
    """The script, as a process."""
    env = servers.environment(url=url, key=key) | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([BASH, "-c", SCRIPT], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_agents_and_a_script_race_and_one_has_the_contact(place: Place, seed: int, rounds: int) -> None:
    with a_race(place, seed) as race:
        race.rehearse()
        for number in range(rounds):
            race.round("curl" if number % EVERY else "gateway")

        assert sum(race.held.values()) == rounds
        print(f"{rounds} rounds: {dict(race.held)}; seconds of the script: {race.costs}")  # noqa: T201 - for `-s`
