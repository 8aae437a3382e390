"""A real gateway with the SMTP door open, as a stranger would set it up: `gateway init`, `tls self-signed`, `serve`."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests import servers
from tests.counterparts.programs import SENDER
from tests.servers import PATIENCE, Served, init, run_cli

HOSTNAME = "gw.example.com"


@dataclass(frozen=True)
class Stand:
    """A gateway that runs; `key` is the operator's, `certificate` a file that clients must be told to trust."""

    served: Served
    key: str
    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "gateway-cert.pem"

    @property
    def name(self) -> str:
        """The name to log in with: the key's prefix."""
        return self.key[:16]

    def port(self, tls: str = "starttls") -> int:
        """The port of a door, `starttls` or `implicit`."""
        lines = [line for line in self.served.lines if line["event"] == "smtp.listening"]
        return int(next(line["port"] for line in lines if line["tls"] == tls))

    def ask(self, method: str, path: str, **body: object) -> Any:  # noqa: ANN401 - whatever the answer is
        """The answer to an HTTP request of the operator."""
        url = f"http://127.0.0.1:{self.served.port}/v1/{path}"
        head = {"Authorization": f"Bearer {self.key}"}
        answer = httpx.request(method, url, json=body or None, headers=head, timeout=PATIENCE)
        assert answer.is_success, answer.text
        return answer.json()

    def suppress(self, person: str) -> None:
        """Nobody may write to this person any more."""
        self.ask("POST", "suppressions", recipientEmail=person, reasonCode="manual_dnc")

    def agent(self, name: str) -> str:
        """A new agent; returns a key that is bound to it."""
        self.ask("POST", "agent/register", agentName=name)
        return str(self.ask("POST", "agent/keys", label=name, agentName=name)["rawKey"])

    def lease(self, person: str, agent: str) -> str:
        """An agent takes a contact; returns the lease's id."""
        self.ask("POST", "agent/register", agentName=agent)
        taken = self.ask("POST", "agent/coordination/lease", contactEmail=person, agentName=agent)
        return str(taken["id"])

    def release(self, lease: str) -> None:
        """The contact is free again."""
        assert self.ask("DELETE", f"agent/coordination/lease/{lease}")["released"]

    def send(self, *people: str, **more: object) -> Any:  # noqa: ANN401 - same
        """Send by HTTP and wait for the attempt; returns the answer."""
        body = {"to": list(people), "subject": "hello", "text": "hi", "sendReason": "a test", **more}
        url, head = f"http://127.0.0.1:{self.served.port}/v1", {"Authorization": f"Bearer {self.key}"}
        answer = httpx.post(
            f"{url}/agent/request-send", json=body, headers=head | {"Prefer": "wait=20"}, timeout=PATIENCE
        )
        assert answer.is_success, answer.text
        return answer.json()


def with_doors(folder: Path) -> dict[str, Any]:
    """The settings of a gateway with both SMTP doors, whose certificate is in this folder."""
    return {
        "roles": "http,smtp,relay",
        "hostname": HOSTNAME,
        "smtp_bind": "127.0.0.1:0",
        "smtps_bind": "127.0.0.1:0",
        "tls_cert": str(folder / "gateway-cert.pem"),
        "tls_key": str(folder / "gateway-key.pem"),
    }


@contextlib.contextmanager
def standing(url: str, folder: Path, smarthost: str, *, mailbox: str = SENDER, **settings: Any) -> Iterator[Stand]:
    """A gateway on this store that relays to the smarthost, with both SMTP doors, until the block ends."""
    folder.mkdir(exist_ok=True)
    key = init(url, folder / "profile.toml", mailbox)["rawKey"]
    made = run_cli("tls", "self-signed", "--dir", str(folder), hostname=HOSTNAME)
    assert made.returncode == 0, made.stderr
    with servers.serving(url, smarthost=smarthost, **(with_doors(folder) | settings)) as served:
        yield Stand(served, key, folder)
