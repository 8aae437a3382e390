"""What a person confirms is what was shown, once, and of a key that may still ask: everything else waits on or ends."""

from typing import Any

import pytest

from gateway.store import confirming, decisions, keys, suppressions
from gateway.store.decisions import Act, Decision
from gateway.store.suppressions import New
from tests.doors.door import Door, problem
from tests.doors.test_decisions import (
    HUMAN,
    KEYS,
    LIST,
    SETTINGS,
    SUPPRESSIONS,
    WIDER,
    asked,
    decide,
    status,
    suppress,
    told,
)
from tests.world import BOXES, PAT, TENANT

MINUTE = 60


@pytest.fixture(autouse=True)
def manager(door: Door) -> None:
    """A key that manages one mailbox, bound to agent b, and one that manages all."""
    door.add_key("manager", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,), agent="b")
    door.add_key("all", scopes=("manage",))


async def shown(door: Door, refused: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = (await door.get(refused["decisionUrl"], by="operator")).json()
    return answer


# --- what was shown --------------------------------------------------------------------------------------------------


async def test_an_entry_that_stands_for_another_reason_by_now_is_shown_again(door: Door) -> None:
    entry = await suppress(door, "operator")
    refused = await asked(door, "DELETE", f"{SUPPRESSIONS}/{PAT}", by="all")
    await suppress(door, "operator", "complaint")

    changed = problem(await decide(door, refused), 409, "decision_changed")

    assert (changed["status"], changed["id"], changed["loosens"]) == ("pending", entry, ["complaint"])
    assert (await shown(door, refused))["loosens"] == ["complaint"]
    assert len((await door.get(SUPPRESSIONS)).json()) == 1
    assert told(door, "decision.confirmed") == []
    assert (await decide(door, refused)).json()["status"] == "confirmed"
    assert (await door.get(SUPPRESSIONS)).json() == []


async def test_an_entry_that_came_later_is_not_taken_off_unseen(door: Door) -> None:
    first = await suppress(door, "operator")
    refused = await asked(door, "DELETE", f"{SUPPRESSIONS}/{PAT}", by="all")
    second = await suppress(door, "operator", "legal_request", scope="campaign", campaignId="spring")

    changed = problem(await decide(door, refused), 409, "decision_changed")

    assert set(changed["id"].split(", ")) == {first, second}
    assert changed["loosens"] == ["legal_request", "manual_dnc"]
    assert (await shown(door, refused))["about"] == changed["id"]
    assert set((await decide(door, refused)).json()["result"]["body"]["ids"]) == {first, second}


async def test_a_control_that_was_tightened_meanwhile_is_shown_again(door: Door) -> None:
    box = f"/v1/agent/mailboxes/{door.world.box[BOXES[0]].id}"
    await door.call("PATCH", box, {"cooldownMinutes": 10}, by="operator")
    refused = await asked(door, "PATCH", box, {"cooldownMinutes": 5, "requireConsensus": False}, by="all")
    await door.call("PATCH", box, {"requireConsensus": True}, by="operator")

    changed = problem(await decide(door, refused), 409, "decision_changed")

    assert set(changed["loosens"]) == {"cooldownMinutes", "requireConsensus"} > set(refused["loosens"])
    assert (await door.get(box, by="operator")).json()["requireConsensus"] is True


async def test_what_needs_no_person_any_more_is_done_as_its_key(door: Door) -> None:
    await door.call("PATCH", SETTINGS, {"cooldownMinutes": 5}, by="operator")
    refused = await asked(door, "PATCH", SETTINGS, {"cooldownMinutes": 3}, by="all")
    await door.call("PATCH", SETTINGS, {"cooldownMinutes": 1}, by="operator")

    answer = (await decide(door, refused)).json()

    assert (answer["status"], answer["result"]["body"]["cooldownMinutes"]) == ("confirmed", 3)
    assert len(told(door, "decision.confirmed")) == 1


async def test_what_nobody_can_do_any_more_waits_on(door: Door) -> None:
    entry = await suppress(door, "operator")
    refused = await asked(door, "DELETE", f"{SUPPRESSIONS}/{entry}", by="all")
    await door.call("DELETE", f"{SUPPRESSIONS}/{entry}", by="operator")

    answer = problem(await decide(door, refused), 409, "decision_not_carried_out")

    assert (answer["status"], answer["result"]["body"]["error"]) == ("pending", "suppression_not_found")


async def test_to_ask_once_more_costs_the_key_nothing_and_keeps_nothing(door: Door) -> None:
    door.add_key("slow", scopes=("manage",), per_minute=2)
    refused = await asked(door, "POST", KEYS, WIDER, by="slow")

    assert (await decide(door, refused)).json()["status"] == "confirmed"

    assert (await door.get("/v1/agent/whoami", by="slow")).status_code == 200
    assert len((await door.get(LIST, by="operator")).json()) == 1


# --- of a key that may still ask -------------------------------------------------------------------------------------


async def test_a_revoked_key_takes_its_wishes_with_it(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    other = await asked(door, "POST", KEYS, WIDER, by="all")
    await door.call("DELETE", f"{KEYS}/{door.ids['manager']}", by="operator")

    late = problem(await decide(door, refused), 409, "decision_closed")

    assert late["status"] == await status(door, refused) == "rejected"
    assert await status(door, other) == "pending"
    (event,) = told(door, "decision.rejected")
    assert "key_revoked" in event


async def test_a_wish_that_has_outlived_its_key_ends_when_it_is_confirmed(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    before = len(door.world.rows()["api_keys"])
    door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, door.ids["manager"]))

    answer = problem(await decide(door, refused), 409, "asking_key_revoked")

    assert answer["status"] == await status(door, refused) == "rejected"
    assert len(door.world.rows()["api_keys"]) == before
    assert len(told(door, "decision.rejected")) == 1
    problem(await decide(door, refused), 409, "decision_closed")


# --- who is gone -----------------------------------------------------------------------------------------------------


def claimed(door: Door, refused: dict[str, Any], actor: str = "gone") -> Decision:
    """Claimed by somebody of whom nothing more is heard."""
    act = Act(TENANT, refused["decisionId"], actor)
    (found,) = door.world.store.write((TENANT,), lambda tx: confirming.claim(tx, [act]))
    assert isinstance(found, Decision)
    return found


async def test_one_that_was_begun_and_not_ended_waits_again_after_a_minute(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    claimed(door, refused)
    during = problem(await decide(door, refused), 409, "decision_closed")
    assert during["status"] == (await shown(door, refused))["status"] == "confirming"
    (row,) = (await door.get(LIST, params={"status": "confirming"}, by="operator")).json()
    assert (row["id"], row["decidedBy"]) == (refused["decisionId"], "gone")
    assert (await asked(door, "POST", KEYS, WIDER))["decisionId"] == refused["decisionId"]
    door.world.advance(MINUTE)

    after = await shown(door, refused)

    assert (after["status"], after["decidedAt"], after["decidedBy"]) == ("pending", None, None)
    assert told(door, "decision.confirmed") == []
    assert (await decide(door, refused)).json()["status"] == "confirmed"
    assert len(told(door, "decision.confirmed")) == 1


async def test_who_comes_back_late_takes_nothing_from_who_confirms_now(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    late = claimed(door, refused, "late")
    door.world.advance(MINUTE)
    claimed(door, refused, "now")
    act = Act(TENANT, late.id, "late", claimed_at=late.decided_at)

    for job in (confirming.put_back, confirming.drop):
        (found,) = door.world.store.write((TENANT,), lambda tx, job=job: job(tx, [act]))  # type: ignore[misc]
        assert isinstance(found, Decision)
        assert (found.status, found.decided_by) == ("confirming", "now")
    assert told(door, "decision.rejected") == []


# --- how many wait ---------------------------------------------------------------------------------------------------


async def test_one_key_leaves_room_for_the_wishes_of_others(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "KEY_PENDING_MAX", 2)
    for number in range(2):
        await asked(door, "POST", KEYS, WIDER | {"label": str(number)})

    third = problem(await door.post(KEYS, WIDER | {"label": "2"}, by="manager"), 403, HUMAN)

    assert "decisionUrl" not in third
    await asked(door, "POST", KEYS, WIDER, by="all")


async def test_a_domain_of_several_entries_is_named_whole(door: Door) -> None:
    domain = "blocked.example.org"
    both = [
        New(domain, domain, "tenant", "manual_dnc", created_by="operator"),
        New(domain, domain, "campaign", "complaint", campaign="spring", created_by="operator"),
    ]
    made = door.world.store.write((TENANT,), lambda tx: suppressions.add(tx, [(TENANT, one) for one in both]))

    refused = await asked(door, "DELETE", f"/v1/suppressed-domains/{domain}", by="all")

    assert set(refused["id"].split(", ")) == {entry.id for entry, _ in made}
    assert refused["loosens"] == ["complaint", "manual_dnc"]
