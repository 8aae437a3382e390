"""Each method of both clients against a gateway that is up."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gateway.client import (
    AgentBoundToKey,
    AgentMismatch,
    Cooldown,
    HumanDecisionRequired,
    Invalid,
    KeyReused,
    LeaseConflict,
    LeaseExpired,
    NotFound,
    StaleToken,
    Suppressed,
    Unauthorized,
)
from gateway.client.call import LINES, Call, plain
from tests.client.asked import Either
from tests.client.conftest import Make, Place

Agent = Callable[[str], Either]
MAIL = {"subject": "Hello", "text": "A word."}


def test_whose_key_it_is_and_what_it_may_do(operator: Either) -> None:
    who = operator.whoami()

    assert who.tenant_id == "default"
    assert "operator" in who.scopes
    assert who.agent_id is None
    assert who.body["mailboxes"][0]["address"] == "agent@gw.example.com"


def test_an_agent_is_registered_listed_and_there(operator: Either, name: str) -> None:
    made = operator.register(name, role="outbound", metadata={"team": "x"})

    assert (made.agent_name, made.agent_role, made.api_key_binding) == (name, "outbound", "not_requested")
    assert made.registered_at.tzinfo is not None
    assert made.id in [one.id for one in operator.agents()]
    assert operator.heartbeat(agent=name) is True


def test_a_mail_is_taken_under_a_key_that_was_made_for_it(operator: Either, at: str) -> None:
    sent = operator.send(at, **MAIL)

    assert sent.status == "queued"
    assert not sent.refused
    assert sent.idempotency_key.startswith("py-")
    assert operator.request(sent.request_id).subject == "Hello"
    assert operator.request_by_key(sent.idempotency_key).request_id == sent.request_id


def test_the_same_key_is_the_same_send_and_another_text_is_refused(operator: Either, at: str, name: str) -> None:
    first = operator.send(at, idempotency_key=name, **MAIL)
    again = operator.send(at, idempotency_key=name, **MAIL)

    assert (again.request_id, again.replayed) == (first.request_id, True)
    with pytest.raises(KeyReused) as caught:
        operator.send(at, idempotency_key=name, subject="Other", text="Another word.")
    assert caught.value.request_id == first.request_id
    assert caught.value.idempotency_key == name


def test_a_refusal_is_an_answer_unless_it_is_to_be_an_error(operator: Either, at: str) -> None:
    operator.send(at, **MAIL)

    answer = operator.send(at, **MAIL)

    assert (answer.refused, answer.reason) == (True, "cooldown")
    assert answer.next_action == "schedule after retryAt or drop"
    assert answer.retry_at == answer.cooldown_expires_at
    assert answer.retry_at > datetime.now(UTC)
    with pytest.raises(Cooldown):
        answer.raise_for_refusal()
    with pytest.raises(Cooldown) as caught:
        operator.send(at, strict=True, **MAIL)
    assert (caught.value.reason, caught.value.next_action) == ("cooldown", answer.next_action)
    assert caught.value.retry_at is not None
    assert str(caught.value.idempotency_key).startswith("py-")


def test_a_dry_run_says_the_same_and_writes_nothing(operator: Either, at: str) -> None:
    tried = operator.dry_run(at, **MAIL)

    assert (tried.request_id, tried.would_allow, tried.refused) == (None, True, False)
    assert operator.send(at, **MAIL).status == "queued"
    assert operator.dry_run(at, **MAIL).refused


def test_a_batch_gives_each_mail_its_key(operator: Either, at: str) -> None:
    done = operator.batch([{"to": f"a-{at}"}, {"to": f"b-{at}", "idempotency_key": at}], **MAIL)

    assert [one.status for one in done.results] == ["queued", "queued"]
    assert done.results[0].idempotency_key.startswith("py-")
    assert done.results[1].idempotency_key == at
    assert done.total == 2
    with pytest.raises(ValueError, match="at most 500"):
        operator.batch([{"to": at}] * 501)


def test_an_answer_in_lines_comes_line_by_line(operator: Either, at: str) -> None:
    mails = {"sends": [{"to": f"{n}-{at}", "idempotencyKey": f"{n}-{at}", **MAIL} for n in range(3)]}
    call = Call("POST", "/v1/agent/batch/request-send", plain, mails, accept=LINES)

    *results, totals = operator.lines(call)

    assert [(one["index"], one["status"]) for one in results] == [(n, "queued") for n in range(3)]
    assert totals["total"] == 3
    assert [one["tenant_id"] for one in operator.lines(Call("GET", "/v1/agent/whoami", plain))] == ["default"]
    with pytest.raises(NotFound):
        list(operator.lines(Call("GET", "/v1/nowhere", plain)))


def test_a_time_needs_its_offset_and_may_be_far(operator: Either, at: str) -> None:
    later = datetime.now(UTC) + timedelta(days=3)

    sent = operator.send(at, scheduled_at=later, **MAIL)

    assert sent.status == "scheduled"
    assert operator.cancel(sent.request_id).cancelled
    with pytest.raises(ValueError, match="no offset"):
        operator.send(at, scheduled_at=later.replace(tzinfo=None), **MAIL)


def test_lists_go_over_all_pages(operator: Either, at: str, name: str) -> None:
    ids = [operator.send(f"{n}-{at}", campaign_action=name, **MAIL).request_id for n in range(53)]

    assert [one.request_id for one in operator.requests(campaign_action=name)] == ids[::-1]


def test_all_that_was_decided_can_be_read(operator: Either, at: str) -> None:
    sent = operator.send(at, **MAIL)

    assert operator.trace(sent.request_id)["policyDecision"]["allow"] is True
    assert operator.budget().daily.resets_at > datetime.now(UTC)


def test_whom_all_must_leave_alone(operator: Either, at: str) -> None:
    assert operator.check_suppression(at).suppressed is False

    operator.add_suppression(at, reason_code="manual_dnc")

    found = operator.check_suppression(at)
    assert (found.suppressed, found.reason, found.matched_on) == (True, "manual_dnc", "email")
    with pytest.raises(Suppressed) as caught:
        operator.send(at, strict=True, **MAIL)
    assert str(caught.value.next_action).startswith("stop")


def test_a_contact_has_one_holder(agent: Agent, at: str, name: str) -> None:
    mine, other = agent(f"{name}-mine"), agent(f"{name}-other")
    lease = mine.acquire(at, minutes=5, intent="a_test")

    assert (lease.contact_email, lease.intent) == (at, "a_test")
    assert lease.id in [one.id for one in mine.leases()]
    with pytest.raises(LeaseConflict) as caught:
        other.acquire(at)
    holder = caught.value.holder
    assert (holder.agent_id, holder.agent_name, holder.kind) == (lease.agent_id, f"{name}-mine", "lease")
    assert holder.expires_at == lease.expires_at
    assert caught.value.retry_at == lease.expires_at
    refused = other.send(at, **MAIL)
    assert (refused.reason, refused.lease_holder.agent_id) == ("lease_conflict", lease.agent_id)
    assert refused.lease_holder.expires_at == lease.expires_at
    assert mine.renew(lease.id, fencing_token=lease.fencing_token, minutes=9).expires_at > lease.expires_at
    assert mine.release(lease.id).released
    assert mine.release(lease.id).released is False
    assert other.acquire(at).fencing_token == lease.fencing_token + 1


def test_a_person_takes_a_contact_over_at_once(agent: Agent, operator: Either, at: str, name: str) -> None:
    mine = agent(name)
    lease = mine.acquire(at)
    operator.register(f"{name}-free")

    taken = operator.acquire(at, override_reason="the agent hangs", agent=f"{name}-free")

    assert (taken.agent_name, taken.fencing_token) == (f"{name}-free", lease.fencing_token + 1)
    assert mine.renew(lease.id).renewed is False


def test_who_waits_in_line_gets_the_contact_when_it_is_free(agent: Agent, at: str, name: str) -> None:
    first = agent(name).acquire(at, minutes=0.01)

    second = agent(f"{name}-next").acquire(at, wait_seconds=25)

    assert second.fencing_token == first.fencing_token + 1


def test_a_lease_is_found_by_its_contact_and_by_its_agent(agent: Agent, at: str, name: str) -> None:
    mine = agent(name)
    lease = mine.acquire(at)
    other = mine.acquire(f"other-{at}")

    assert [one.id for one in mine.leases(contact=at)] == [lease.id]
    assert {one.id for one in mine.leases(of_agent=name)} == {lease.id, other.id}


def test_an_agent_is_configured_member_by_member(operator: Either, name: str) -> None:
    made = operator.register(name)
    operator.update_config(made.id, humanizer_enabled=True)

    done = operator.update_config(made.id, humanizer_style="casual")

    assert done["updated"] is True
    assert {"humanizer_enabled": True, "humanizer_style": "casual"}.items() <= operator.config(made.id).items()
    with pytest.raises(NotFound):
        operator.config("agent_0123456789ab")


def test_an_old_token_and_one_of_a_lease_that_has_ended_are_told_apart(
    agent: Agent, operator: Either, at: str, name: str
) -> None:
    mine = agent(name)
    lease = mine.acquire(at)
    mine.release(lease.id)

    with pytest.raises(LeaseExpired):
        mine.send(at, fencing_token=lease.fencing_token, strict=True, **MAIL)
    agent(f"{name}-next").acquire(at)
    with pytest.raises(StaleToken) as caught:
        mine.send(at, fencing_token=lease.fencing_token, strict=True, **MAIL)
    assert "discard" in str(caught.value.next_action)


def test_a_key_acts_as_its_agent_alone(agent: Agent, operator: Either, make: Make, place: Place, name: str) -> None:
    mine = agent(name)
    operator.register(f"{name}-free")

    with pytest.raises(AgentMismatch):
        mine.heartbeat(agent=f"{name}-free")
    with pytest.raises(AgentBoundToKey):
        operator.heartbeat(agent=name)
    assert make(place.url, place.key, agent=f"{name}-free").heartbeat() is True


def test_agents_vote(agent: Agent, at: str, name: str) -> None:
    first, second = agent(f"{name}-a"), agent(f"{name}-b")
    for one in (first, second):
        one.heartbeat()
    asked = first.create_consensus("pause outreach", at, "it is late", minutes=5)

    vote = second.vote(asked.id, "approve", reason="agreed")

    assert (asked.status, asked.requesting_agent_id) == ("pending", first.whoami().agent_id)
    assert (asked.approve, asked.reject, asked.decided_at) == (0, 0, None)
    assert 1 <= asked.threshold <= asked.active_agents
    assert asked.next_action
    assert first.consensus(asked.id).approve == 1
    assert (vote.vote, vote.agent_id) == ("approve", second.whoami().agent_id)
    assert first.consensus(asked.id).id == asked.id
    assert asked.id in [one.id for one in first.consensuses()]
    assert [one.agent_id for one in first.votes(asked.id)] == [vote.agent_id]


def test_what_happened_can_be_listed(operator: Either, at: str) -> None:
    sent = operator.send(at, **MAIL)

    page = operator.events(contact=at, events=["send.*"])

    assert [(one.type, one.request_id, one.contact) for one in page.items] == [("send.queued", sent.request_id, at)]
    assert page.items[0].occurred_at is not None
    assert operator.events(since=page.since, contact=at).items == ()


def test_every_bad_field_is_named(operator: Either) -> None:
    with pytest.raises(Invalid) as caught:
        operator.send("nobody", cc="no one@", **MAIL)

    assert {"to", "cc"} <= {field.partition("[")[0] for field in caught.value.errors}
    assert (caught.value.status, caught.value.slug) == (422, "invalid_request")


def test_what_is_not_there_and_who_may_not(operator: Either, make: Make, place: Place, name: str) -> None:
    with pytest.raises(NotFound):
        operator.request("req_nowhere")
    with pytest.raises(NotFound):
        operator.request_by_key(f"{name}-never")
    with pytest.raises(Unauthorized):
        make(place.url, "gk_live_" + "x" * 43).whoami()


def test_what_loosens_a_control_is_for_a_person(make: Make, place: Place) -> None:
    manager = make(place.url, place.new_key(scopes=["read", "send", "manage"])["rawKey"])

    with pytest.raises(HumanDecisionRequired) as caught:
        manager.ask(Call("PATCH", "/v1/agent/config/settings", plain, {"cooldownMinutes": 0}))

    assert caught.value.loosens == ("cooldownMinutes",)
    assert str(caught.value.decision_url).startswith("http")
    assert caught.value.status == 403
