"""A lease for as long as a block runs: given back at its end, renewed where that is asked for, and told when it is lost."""

from collections.abc import Callable

import pytest

from gateway.client import GatewayError, LeaseConflict, LeaseLost
from tests.client.asked import Either
from tests.client.conftest import Make
from tests.client.wire_server import dropped, said, scripted

KEY = "gk_live_x"
MAIL = {"subject": "Hello", "text": "A word."}
LEASE = {
    "id": "lease-1",
    "agentId": "agent_1",
    "contactEmail": "pat@example.net",
    "fencingToken": 7,
    "expiresAt": "2030-01-01T00:00:00Z",
}
QUICK = 0.02
"""Minutes of a lease that is due in six tenths of a second."""


def test_the_block_has_the_contact_and_gives_it_back(agent: Callable[[str], Either], at: str, name: str) -> None:
    mine, other = agent(name), agent(f"{name}-other")

    with mine.lease(at, minutes=5) as lease:
        assert mine.send(at, fencing_token=lease.token, **MAIL).status == "queued"
        with pytest.raises(LeaseConflict):
            other.acquire(at)
        assert lease.lease.fencing_token == lease.token

    assert at not in [one.contact_email for one in mine.leases()]


def test_a_lease_is_kept_beyond_its_time(agent: Callable[[str], Either], at: str, name: str) -> None:
    mine = agent(name)

    with mine.lease(at, minutes=QUICK * 2, keep=True) as lease:
        first = lease.expires_at
        mine.until(lambda: lease.expires_at > first)
        renewed = lease.expires_at
        mine.until(lambda: lease.expires_at > renewed)
        assert [one.id for one in mine.leases() if one.contact_email == at] == [lease.lease.id]

    assert not lease.lost


def test_the_next_request_of_the_block_is_told_that_the_lease_is_lost(make: Make) -> None:
    steps = (said(200, LEASE), said(200, {"renewed": False, "reason": "stale_fencing_token", "nextAction": "discard"}))
    with scripted(*steps) as server:
        client = make(server.url, KEY)
        with client.lease("pat@example.net", minutes=QUICK, keep=True) as lease:
            client.until(lambda: lease.lost)
            with pytest.raises(LeaseLost) as caught:
                client.send("pat@example.net", fencing_token=7, **MAIL)
            with pytest.raises(LeaseLost):
                _ = lease.token

    assert (caught.value.reason, caught.value.next_action) == (
        "stale_fencing_token",
        "discard",
    )
    assert [path.partition(" ")[0] for path, _, _ in server.asked] == ["POST", "PUT"]


def test_a_lease_that_cannot_be_renewed_is_lost_when_its_time_is_over(make: Make) -> None:
    with scripted(said(200, LEASE), dropped, dropped, dropped) as server:
        client = make(server.url, KEY)
        with client.lease("pat@example.net", minutes=QUICK, keep=True) as lease:
            client.until(lambda: lease.lost)
            with pytest.raises(LeaseLost):
                client.leases()

    assert 3 <= len(server.asked) <= 4


def test_behind_the_block_nothing_is_held_against_its_client(make: Make) -> None:
    with scripted(said(200, LEASE), said(403, {"error": "agent_mismatch"}), said(200, [])) as server:
        client = make(server.url, KEY)
        with client.lease("pat@example.net", minutes=QUICK, keep=True) as lease:
            client.until(lambda: lease.lost)

        assert client.leases() == []


def test_a_contact_that_cannot_be_given_back_is_nobodys_error(make: Make) -> None:
    with scripted(said(200, LEASE), said(500, {"error": "internal"})) as server:
        with make(server.url, KEY).lease("pat@example.net") as lease:
            assert lease.token == 7

        assert [path for path, _, _ in server.asked][1:] == [
            "DELETE /v1/agent/coordination/lease/lease-1?fencingToken=7"
        ]


def test_who_gets_no_lease_does_not_enter(make: Make) -> None:
    body = {"conflict": True, "reason": "lease_conflict", "leaseHolder": {"agentId": "agent_2", "kind": "lease"}}
    with scripted(said(200, body)) as server, pytest.raises(LeaseConflict):
        _enter(make(server.url, KEY))


def _enter(client: Either) -> None:
    with client.lease("pat@example.net"):
        raise GatewayError("it was let in")
