"""Keys, invitations and what a person decides, through both clients, against a gateway that is up."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.client import (
    AgentBoundToKey,
    Conflict,
    Forbidden,
    HumanDecisionRequired,
    Invalid,
    NotFound,
    Unauthorized,
    Unreachable,
)
from gateway.client.call import Call
from gateway.client.granting import claim, confirm, create_key, invite, reject, revoke_invite, unbind_key
from tests.client.asked import Either
from tests.client.conftest import Make, Place
from tests.client.wire_server import dropped, scripted

Agent = Callable[[str], Either]
MAIL = {"subject": "Hello", "text": "A word."}


@pytest.fixture
def manager(make: Make, place: Place, operator: Either, name: str) -> Either:
    """A client whose key manages and is no operator's."""
    return make(place.url, operator.create_key(name, scopes=["read", "send", "manage"]).raw_key)


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_is_made_and_its_secret_is_shown_once(operator: Either, make: Make, place: Place, name: str) -> None:
    agent = operator.register(name)

    made = operator.create_key(name, scopes=("read", "manage"), agent_name=name, requests_per_minute=500)

    assert (made.label, made.status, made.scopes) == (name, "active", ("read", "manage"))
    assert (made.agent_id, made.requests_per_minute, made.scope_all_mailboxes) == (agent.id, 500, True)
    assert made.created_at.tzinfo is not None
    assert make(place.url, made.raw_key).whoami().key_id == made.id
    assert made.raw_key not in repr(made)
    (listed,) = [one for one in operator.api_keys() if one.id == made.id]
    assert (listed.key_prefix, "rawKey" in listed.body) == (made.key_prefix, False)


def test_a_key_is_for_the_mailboxes_that_are_named(operator: Either, name: str) -> None:
    made = operator.create_key(name, mailboxes=["agent@gw.example.com"], transactional=True)

    assert (made.scopes, made.scope_all_mailboxes, made.transactional) == (("read", "send"), False, True)
    assert [one[:4] for one in made.mailboxes] == ["mbx_"]
    assert operator.change_key(made.id, scope_all_mailboxes=True).scope_all_mailboxes is True


def test_a_key_is_narrowed_member_by_member_and_its_limit_taken_off(operator: Either, name: str) -> None:
    key = operator.create_key(name, requests_per_minute=500)

    narrow = operator.change_key(key.id, scopes=("read",))
    free = operator.change_key(key.id, label=f"{name} two", requests_per_minute=None)

    assert (narrow.scopes, narrow.requests_per_minute, narrow.label) == (("read",), 500, name)
    assert (free.scopes, free.requests_per_minute, free.label) == (("read",), None, f"{name} two")
    with pytest.raises(Invalid):
        operator.change_key(key.id)


def test_a_revoked_key_is_good_no_longer_and_its_mail_is_stopped_where_that_is_wanted(
    operator: Either, make: Make, place: Place, name: str, at: str
) -> None:
    kept, stopped = (operator.create_key(f"{name}-{n}") for n in range(2))
    mails = [make(place.url, key.raw_key).send(f"{n}-{at}", **MAIL).request_id for n, key in enumerate((kept, stopped))]

    first, second = operator.revoke_key(kept.id), operator.revoke_key(stopped.id, queued="cancel")

    assert (first.status, first.cancelled) == ("revoked", ())
    assert (second.status, second.cancelled) == ("revoked", (mails[1],))
    assert [operator.request(one).status for one in mails] == ["queued", "cancelled"]
    with pytest.raises(Unauthorized):
        make(place.url, kept.raw_key).whoami()


def test_a_key_acts_as_the_agent_that_it_is_bound_to(operator: Either, make: Make, place: Place, name: str) -> None:
    one, other = (operator.register(f"{name}-{n}") for n in range(2))
    key = operator.create_key(name, agent_name=one.agent_name)

    bound = operator.bind_key(key.id, agent_id=other.id, reason="a test")
    again = operator.bind_key(key.id, agent_name=other.agent_name)
    acts_as = make(place.url, key.raw_key).whoami().agent_id
    freed = operator.unbind_key(key.id, reason="a test")

    assert (bound.agent_id, bound.api_key_binding, again.api_key_binding) == (other.id, "bound", "already_bound")
    assert acts_as == other.id
    assert (freed.agent_id, freed.unbound, operator.unbind_key(key.id).unbound) == (None, True, False)
    last = operator.events(events="key.unbound", limit=500).items[-1]
    assert (last.body["keyId"], last.reason) == (key.id, "a test")


def test_what_reaches_beyond_ones_own_key_is_for_a_person(manager: Either, agent: Agent, name: str) -> None:
    agent(name)

    with pytest.raises(HumanDecisionRequired) as caught:
        manager.create_key(name, scopes=["operator"])
    with pytest.raises(AgentBoundToKey):
        manager.create_key(name, agent_name=name)

    assert caught.value.loosens == ("scopes",)


# --- invitations ------------------------------------------------------------------------------------------------------


def test_who_is_invited_claims_a_key_that_is_bound_to_an_agent_of_its_own(
    operator: Either, make: Make, place: Place, name: str
) -> None:
    invited = operator.invite(name, scopes=["send"], requests_per_minute=700, expires_minutes=5)
    waiting = [one for one in operator.invites() if one.id == invited.id]

    claimed = make(place.url, invited.token).claim(invited.token)

    assert invited.token.startswith("ga_inv_")
    assert (invited.label, invited.status, invited.scopes) == (name, "pending", ("send",))
    assert invited.expires_at - invited.created_at == timedelta(minutes=5)
    assert [one.token_prefix for one in waiting] == [invited.token_prefix]
    who = make(place.url, claimed.api_key).whoami()
    assert (who.key_id, who.agent_id, who.agent_name) == (claimed.key_id, claimed.agent_id, claimed.agent_name)
    assert (claimed.label, claimed.scopes, claimed.tenant_id) == (name, ("send",), "default")
    assert who.body["requests_per_minute"] == 700
    assert invited.token not in repr(invited)
    assert claimed.api_key not in repr(claimed)
    assert invited.id not in [one.id for one in operator.invites()]
    with pytest.raises(Conflict, match="invite_claimed"):
        make(place.url, invited.token).claim(invited.token)


def test_an_invitation_is_taken_back_once(operator: Either, make: Make, place: Place, name: str) -> None:
    invited = operator.invite(name, agent_name=f"{name}-agent", mailboxes=["agent@gw.example.com"])

    gone = operator.revoke_invite(invited.id)

    assert (invited.agent_name, invited.scope_all_mailboxes) == (f"{name}-agent", False)
    assert (gone.id, gone.revoked) == (invited.id, True)
    with pytest.raises(NotFound):
        make(place.url, invited.token).claim(invited.token)
    with pytest.raises((NotFound, Conflict)):
        operator.revoke_invite(invited.id)


# --- what a person decides --------------------------------------------------------------------------------------------


def asked(manager: Either, label: str) -> str:
    """A request of which only a person can make something."""
    with pytest.raises(HumanDecisionRequired) as caught:
        manager.create_key(label, scopes=["operator"])
    assert str(caught.value.decision_url).endswith(f"/{caught.value.decision_id}")
    return str(caught.value.decision_id)


def test_a_person_confirms_what_was_asked_for_and_has_its_answer(
    operator: Either, manager: Either, make: Make, place: Place, name: str
) -> None:
    which = asked(manager, f"{name}-wish")
    shown = operator.decision(which)
    with pytest.raises(Forbidden, match="insufficient_scope"):
        manager.confirm(which)

    done = operator.confirm(which, reason="it is needed")

    assert (shown.status, shown.kind, shown.loosens, shown.decided_at) == ("pending", "api-key", ("scopes",), None)
    assert (shown.request["method"], shown.request["path"]) == ("POST", "/v1/agent/keys")
    assert shown.asked_by_key_id == manager.whoami().key_id
    assert shown.expires_at > datetime.now(UTC)
    assert (done.decision_id, done.decision, done.status) == (which, "confirm", "confirmed")
    assert done.result["status"] == 200
    secret = done.result["body"]["rawKey"]
    assert "operator" in make(place.url, secret).whoami().scopes
    assert secret not in repr(done)
    after = manager.decision(which)
    assert (after.status, after.reason) == ("confirmed", "it is needed")
    assert after.decided_by == f"key:{operator.whoami().key_id}"
    with pytest.raises(Conflict, match="decision_closed"):
        operator.confirm(which)


def test_what_is_rejected_is_listed_as_such(operator: Either, manager: Either, name: str) -> None:
    first, second = asked(manager, f"{name}-1"), asked(manager, f"{name}-2")

    done = operator.reject(first, reason="not now")

    assert (done.decision, done.status, done.result) == ("reject", "rejected", {})
    assert operator.decision(first).reason == "not now"
    assert [one.id for one in manager.decisions()] == [second, first]
    assert [one.id for one in manager.decisions(status="rejected")] == [first]
    assert [one.id for one in manager.decisions(limit=1, offset=1)] == [first]
    assert manager.reject(second).status == "rejected"
    with pytest.raises(NotFound):
        operator.decision("..")


# --- what is not asked twice ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [create_key("x"), unbind_key("x"), invite("x"), revoke_invite("x"), claim("x"), confirm("x"), reject("x")],
    ids=lambda call: call.path,
)
def test_what_would_not_be_the_same_twice_is_asked_once(make: Make, call: Call[Any]) -> None:
    with scripted(dropped, dropped) as server, pytest.raises(Unreachable) as caught:
        make(server.url, "gk_live_x").ask(call)

    assert caught.value.uncertain
    assert len(server.asked) == 1
