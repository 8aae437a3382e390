"""What only a person may do, asked for by an agent: it is kept as it was asked, and confirmed or rejected once."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from gateway.core.errors import HumanDecisionError, StoreUnavailableError
from gateway.store import confirming, decisions, keys, suppressions
from gateway.store.decisions import Act
from gateway.store.suppressions import New
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, PAT, TENANT

KEYS = "/v1/agent/keys"
LIST = "/v1/agent/decisions"
SETTINGS = "/v1/agent/config/settings"
SUPPRESSIONS = "/v1/suppressions"
HUMAN = "human_decision_required"
WIDER = {"label": "wide", "scopes": ["operator"]}


@pytest.fixture(autouse=True)
def manager(door: Door) -> None:
    """A key that manages one mailbox, bound to agent b, and one that manages all."""
    door.add_key("manager", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,), agent="b")
    door.add_key("all", scopes=("manage",))


async def asked(door: Door, method: str, path: str, body: object = None, *, by: str = "manager") -> dict[str, Any]:
    """A request that only a person may make; the refusal, with its link."""
    refused = problem(await door.call(method, path, body, by=by), 403, HUMAN)
    assert refused["decisionUrl"] == f"http://localhost{LIST}/{refused['decisionId']}"
    assert refused["reason"] == "enforce"
    return refused


async def decide(
    door: Door, refused: dict[str, Any], decision: str = "confirm", *, by: str = "operator"
) -> httpx.Response:
    return await door.post(refused["decisionUrl"], {"decision": decision}, by=by)


async def status(door: Door, refused: dict[str, Any]) -> str:
    return str((await door.get(f"{LIST}/{refused['decisionId']}", by="operator")).json()["status"])


def told(door: Door, name: str) -> list[str]:
    """The events of this name, as text."""
    return [str(row) for row in door.world.rows()["events"] if name in row]


# --- each control ----------------------------------------------------------------------------------------------------


async def test_a_wider_key_is_made_by_who_confirms_as_the_agent_meant_it(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)

    answer = (await decide(door, refused)).json()

    assert (refused["kind"], refused["id"], refused["loosens"]) == ("api-key", "new", ["scopes"])
    assert (answer["decision"], answer["status"], answer["result"]["status"]) == ("confirm", "confirmed", 200)
    made = answer["result"]["body"]
    assert (made["scopes"], made["mailboxes"]) == (list(keys.SCOPES)[3:], [door.world.box[BOXES[1]].id])
    assert made["agentId"] == door.world.agent["b"]
    assert made["createdByKeyId"] == door.ids["operator"]
    who = (await door.get("/v1/agent/whoami", by=made["rawKey"])).json()
    assert who["key_id"] == made["id"]
    assert made["rawKey"] not in str(door.world.rows())


async def test_a_looser_setting_is_set_by_who_confirms(door: Door) -> None:
    refused = await asked(door, "PATCH", SETTINGS, {"cooldownMinutes": 1}, by="all")

    result = (await decide(door, refused)).json()["result"]

    assert (refused["kind"], refused["id"], refused["loosens"]) == ("tenant-settings", TENANT, ["cooldownMinutes"])
    assert result["body"]["cooldownMinutes"] == 1
    assert (await door.get(SETTINGS)).json()["cooldownMinutes"] == 1


async def test_a_paused_mailbox_goes_on_when_a_person_confirms(door: Door) -> None:
    box = door.world.box[BOXES[1]].id
    await door.post(f"/v1/agent/mailboxes/{box}/pause", by="manager")
    refused = await asked(door, "POST", f"/v1/agent/mailboxes/{box}/resume")

    assert (await decide(door, refused)).json()["result"]["body"]["status"] == "active"
    assert (refused["kind"], refused["id"]) == ("mailbox-resume", box)


@pytest.mark.parametrize("named", ["id", "address", "domain"])
async def test_what_others_have_suppressed_only_a_person_takes_off_the_list(door: Door, named: str) -> None:
    subject = {"domain": "blocked.example.org"} if named == "domain" else {"recipientEmail": PAT}
    entry = (await door.post(SUPPRESSIONS, {**subject, "reasonCode": "manual_dnc"}, by="a")).json()
    path = {
        "id": f"{SUPPRESSIONS}/{entry['id']}",
        "address": f"{SUPPRESSIONS}/{PAT}",
        "domain": "/v1/suppressed-domains/blocked.example.org",
    }[named]

    refused = await asked(door, "DELETE", path, by="all")

    assert (refused["kind"], refused["id"], refused["loosens"]) == ("suppression", entry["id"], ["manual_dnc"])
    assert [one["id"] for one in (await door.get(SUPPRESSIONS)).json()] == [entry["id"]]
    assert (await decide(door, refused)).json()["result"]["body"] == {"removed": True, "ids": [entry["id"]]}
    assert (await door.get(SUPPRESSIONS)).json() == []


async def suppress(door: Door, by: str, reason: str = "manual_dnc", **more: Any) -> str:
    body = {"recipientEmail": PAT, "reasonCode": reason} | more
    return str((await door.post(SUPPRESSIONS, body, by=by)).json()["id"])


async def test_an_agent_takes_back_what_it_alone_has_entered(door: Door) -> None:
    await suppress(door, "all")
    entry = await suppress(door, "all")

    gone = (await door.call("DELETE", f"{SUPPRESSIONS}/{PAT}", by="all")).json()

    assert gone == {"removed": True, "ids": [entry]}


@pytest.mark.parametrize("reason", ["complaint", "unsubscribe", "legal_request"])
async def test_what_rests_on_a_persons_word_no_agent_takes_back(door: Door, reason: str) -> None:
    entry = await suppress(door, "all", reason)

    await asked(door, "DELETE", f"{SUPPRESSIONS}/{entry}", by="all")


LATER = {"expiresAt": "2999-01-01T00:00:00Z"}


@pytest.mark.parametrize("first", ["all", "operator"])
@pytest.mark.parametrize("more", [{}, LATER], ids=["as strong", "weaker"])
@pytest.mark.parametrize("way", ["one", "list"])
async def test_what_another_wants_too_is_no_agents_own(door: Door, first: str, more: dict[str, str], way: str) -> None:
    second = {"all": "operator", "operator": "all"}[first]
    entry = await suppress(door, first)
    if way == "one":
        await suppress(door, second, **more)
    else:
        body = {"entries": [{"email": PAT, "reasonCode": "hard_bounce", **more}]}
        assert (await door.post(f"{SUPPRESSIONS}/import", body, by=second)).json()["accepted"] == 1

    await asked(door, "DELETE", f"{SUPPRESSIONS}/{entry}", by="all")
    await suppress(door, "all")
    await asked(door, "DELETE", f"{SUPPRESSIONS}/{PAT}", by="all")


async def test_an_entry_that_is_over_belongs_to_who_makes_it_anew(door: Door) -> None:
    until = door.world.now + timedelta(minutes=1)
    new = New(PAT, PAT, "tenant", "manual_dnc", created_by="operator", expires_at=until)
    door.world.store.write((TENANT,), lambda tx: suppressions.add(tx, [(TENANT, new)]))
    door.world.advance(61)
    entry = await suppress(door, "all")

    assert (await door.call("DELETE", f"{SUPPRESSIONS}/{entry}", by="all")).json()["removed"] is True


async def test_one_entry_of_an_agents_own_beside_another_leaves_both(door: Door) -> None:
    await suppress(door, "all")
    campaign = {"scope": "campaign", "campaignId": "spring"}
    await suppress(door, "operator", **campaign)

    await asked(door, "DELETE", f"{SUPPRESSIONS}/{PAT}", by="all")

    assert len((await door.get(SUPPRESSIONS)).json()) == 2


async def test_who_becomes_a_second_maker_meanwhile_is_seen_under_the_lock(door: Door) -> None:
    entry = await suppress(door, "operator")

    wishes = [(TENANT, entry, f"key:{door.ids['all']}"), (TENANT, "sup_nowhere", "x")]
    late, nothing = door.world.store.write((TENANT,), lambda tx: suppressions.take_back(tx, wishes))

    assert isinstance(late, HumanDecisionError)
    assert nothing is None


async def test_what_is_not_there_needs_no_decision(door: Door) -> None:
    problem(await door.call("DELETE", f"{SUPPRESSIONS}/sup_nowhere", by="all"), 404, "suppression_not_found")
    problem(await door.call("DELETE", "/v1/suppressed-domains/example.org", by="all"), 404, "suppression_not_found")

    assert (await door.get(LIST, by="operator")).json() == []


async def test_another_keys_end_is_confirmed_with_its_query(door: Door) -> None:
    refused = await asked(door, "DELETE", f"{KEYS}/{door.ids['free']}?queued=cancel", by="all")

    shown = (await door.get(refused["decisionUrl"], by="operator")).json()
    result = (await decide(door, refused)).json()["result"]

    assert (shown["request"]["method"], shown["request"]["query"]) == ("DELETE", "queued=cancel")
    assert result["body"]["revoked"] is True
    problem(await door.get("/v1/agent/whoami", by="free"), 401, "unauthorized")


# --- what is kept ----------------------------------------------------------------------------------------------------


async def test_a_decision_shows_the_request_as_it_was_made(door: Door) -> None:
    refused = await asked(door, "PATCH", SETTINGS, {"cooldownMinutes": 2}, by="all")

    shown = (await door.get(refused["decisionUrl"], by="operator")).json()

    assert shown["request"] == {"method": "PATCH", "path": SETTINGS, "query": "", "body": {"cooldownMinutes": 2}}
    assert (shown["id"], shown["status"], shown["kind"]) == (refused["decisionId"], "pending", "tenant-settings")
    assert (shown["askedByKeyId"], shown["askedBy"]) == (door.ids["all"], f"key:{door.ids['all']}")
    assert (shown["decidedAt"], shown["decidedBy"]) == (None, None)


async def test_the_same_wish_of_the_same_key_is_kept_once(door: Door) -> None:
    first = await asked(door, "POST", KEYS, WIDER)
    again = await asked(door, "POST", KEYS, WIDER)
    other = await asked(door, "POST", KEYS, WIDER, by="all")
    await decide(door, first, "reject")
    anew = await asked(door, "POST", KEYS, WIDER)

    ids = [one["decisionId"] for one in (first, again, other, anew)]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert len(told(door, "decision.requested")) == 3


async def test_a_decision_expires_after_a_day(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    door.world.advance(timedelta(hours=24, seconds=1).total_seconds())

    late = problem(await decide(door, refused), 409, "decision_closed")
    anew = await asked(door, "POST", KEYS, WIDER)

    assert late["status"] == await status(door, refused) == "expired"
    assert anew["decisionId"] != refused["decisionId"]
    expired = (await door.get(LIST, params={"status": "expired"}, by="operator")).json()
    assert [one["id"] for one in expired] == [refused["decisionId"]]


async def test_a_wish_that_nobody_decided_is_forgotten_after_a_week(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    door.world.advance(timedelta(days=9).total_seconds())

    await asked(door, "POST", KEYS, WIDER)

    problem(await door.get(refused["decisionUrl"], by="operator"), 404, "decision_not_found")


async def test_beyond_so_many_that_wait_there_is_no_link(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "PENDING_MAX", 2)
    first = await asked(door, "POST", KEYS, WIDER | {"label": "1"})
    await asked(door, "POST", KEYS, WIDER | {"label": "2"})

    third = problem(await door.post(KEYS, WIDER | {"label": "3"}, by="manager"), 403, HUMAN)

    assert not {"decisionUrl", "decisionId"} & third.keys()
    assert (third["kind"], third["loosens"]) == ("api-key", ["scopes"])
    await decide(door, first, "reject")
    await asked(door, "POST", KEYS, WIDER | {"label": "3"})


async def test_a_large_body_is_not_kept(door: Door) -> None:
    people = [f"p{number}@{'x' * 60}.example.com" for number in range(900)]

    refused = problem(await door.call("PATCH", SETTINGS, {"internalAddresses": people}, by="all"), 403, HUMAN)

    assert "decisionUrl" not in refused
    assert (await door.get(LIST, by="operator")).json() == []


async def test_a_store_that_keeps_nothing_refuses_without_a_link(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: object) -> None:
        raise StoreUnavailableError("down")

    with monkeypatch.context() as patched:
        patched.setattr(door.context.store, "write", down)
        refused = problem(await door.post(KEYS, WIDER, by="manager"), 403, HUMAN)

    assert "decisionUrl" not in refused


async def test_a_key_that_has_just_been_changed_asks_again_and_nothing_is_kept(door: Door) -> None:
    await door.get("/v1/agent/whoami", by="all")
    door.world.store.write((TENANT,), lambda tx: keys.bind_key(tx, TENANT, door.ids["all"], door.world.agent["c"]))

    refused = problem(await door.post(KEYS, {"label": "late"}, by="all"), 403, HUMAN)

    assert "decisionUrl" not in refused
    assert (await door.get(LIST, by="operator")).json() == []


# --- who decides -----------------------------------------------------------------------------------------------------


async def test_an_agent_confirms_nothing_sees_its_own_and_takes_its_own_back(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    other = await asked(door, "POST", KEYS, WIDER, by="all")

    problem(await decide(door, refused, by="manager"), 403, "insufficient_scope")
    problem(await decide(door, other, "reject", by="manager"), 404, "decision_not_found")
    problem(await door.get(other["decisionUrl"], by="manager"), 404, "decision_not_found")
    assert [one["id"] for one in (await door.get(LIST, by="manager")).json()] == [refused["decisionId"]]
    taken = (await decide(door, refused, "reject", by="manager")).json()

    assert (taken["decision"], taken["status"]) == ("reject", "rejected")
    problem(await decide(door, refused), 409, "decision_closed")
    assert await status(door, other) == "pending"


async def test_a_rejected_wish_changes_nothing_and_says_who_and_why(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    before = door.world.rows()["api_keys"]

    answer = await door.post(refused["decisionUrl"], {"decision": "reject", "reason": "not now"}, by="operator")

    assert answer.json()["status"] == "rejected"
    assert door.world.rows()["api_keys"] == before
    shown = (await door.get(refused["decisionUrl"], by="operator")).json()
    assert shown["decidedBy"] == f"key:{door.ids['operator']}"
    assert shown["decidedAt"] is not None
    (event,) = told(door, "decision.rejected")
    assert "not now" in event


async def test_who_has_asked_is_told_why_it_was_decided_so(door: Door) -> None:
    first, second, third = [await asked(door, "POST", KEYS, WIDER | {"label": label}) for label in ("1", "2", "3")]

    async def why(refused: dict[str, Any]) -> object:
        return (await door.get(refused["decisionUrl"], by="manager")).json()["reason"]

    waiting = await why(first)
    acts = [Act(TENANT, one["decisionId"], "operator", reason=f"no to {n}") for n, one in ((1, first), (2, second))]
    door.world.store.write((TENANT,), lambda tx: decisions.reject(tx, acts))
    await door.post(third["decisionUrl"], {"decision": "confirm", "reason": "it is needed"}, by="operator")

    assert waiting is None
    assert [await why(one) for one in (first, second, third)] == ["no to 1", "no to 2", "it is needed"]


async def test_a_reason_is_there_where_one_was_given_or_the_key_was_revoked(door: Door) -> None:
    silent, orphan = [await asked(door, "POST", KEYS, WIDER | {"label": label}) for label in ("1", "2")]
    await decide(door, silent, "reject")
    await door.call("DELETE", f"{KEYS}/{door.ids['manager']}", by="operator")

    shown = [(await door.get(one["decisionUrl"], by="operator")).json() for one in (silent, orphan)]

    assert [(one["status"], one["reason"]) for one in shown] == [("rejected", None), ("rejected", "key_revoked")]


async def test_a_wish_is_confirmed_once(door: Door) -> None:
    refused = await asked(door, "POST", KEYS, WIDER)
    before = len(door.world.rows()["api_keys"])

    answers = await asyncio.gather(*(decide(door, refused) for _ in range(5)))

    assert sorted(one.status_code for one in answers) == [200, 409, 409, 409, 409]
    assert {one.json()["error"] for one in answers if one.status_code == 409} == {"decision_closed"}
    assert len(door.world.rows()["api_keys"]) == before + 1
    assert len(told(door, "decision.confirmed")) == 1


async def test_what_is_refused_when_it_is_confirmed_waits_on(door: Door) -> None:
    door.add_key("local", scopes=keys.SCOPES, mailboxes=(door.world.box[BOXES[0]].id,))
    refused = await asked(door, "POST", KEYS, WIDER)

    answer = problem(await decide(door, refused, by="local"), 409, "decision_not_carried_out")

    assert (answer["status"], answer["result"]["status"]) == ("pending", 403)
    assert answer["result"]["body"]["error"] == HUMAN
    assert "decisionUrl" not in answer["result"]["body"]
    assert told(door, "decision.confirmed") == []
    assert (await decide(door, refused)).json()["status"] == "confirmed"


@pytest.mark.parametrize("by", ["operator", "local"])
async def test_what_was_carried_out_is_told_where_nothing_more_can_be_written(
    door: Door, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    door.add_key("local", scopes=keys.SCOPES, mailboxes=(door.world.box[BOXES[0]].id,))
    refused = await asked(door, "POST", KEYS, WIDER)

    def down(*_: object) -> list[Exception]:
        return [StoreUnavailableError("down")]

    monkeypatch.setattr(confirming, "done", down)
    monkeypatch.setattr(confirming, "put_back", down)
    answer = await decide(door, refused, by=by)

    assert (answer.status_code, answer.json()["status"]) == ({"operator": 200, "local": 409}[by], "confirming")
    assert ("rawKey" in answer.json()["result"]["body"]) == (by == "operator")


async def test_another_tenants_decisions_are_not_there(door: Door) -> None:
    from gateway.store import agents

    refused = await asked(door, "POST", KEYS, WIDER)
    store = door.world.store
    store.write((), lambda tx: agents.add_tenant(tx, "other"))
    wish = keys.NewKey("other", "x", keys.SCOPES)
    ((_, raw),) = store.write(("other",), lambda tx: keys.create_keys(tx, [wish]))

    problem(await decide(door, refused, by=raw), 404, "decision_not_found")
    assert (await door.get(LIST, by=raw)).json() == []


async def test_lists_have_pages_and_bad_questions_are_named(door: Door) -> None:
    for number in range(3):
        await asked(door, "POST", KEYS, WIDER | {"label": str(number)})

    rows = [(await door.get(LIST, params={"limit": 1, "offset": n}, by="operator")).json() for n in range(4)]

    assert [[one["request"]["body"]["label"] for one in page] for page in rows] == [["2"], ["1"], ["0"], []]
    assert faults(await door.get(LIST, params={"status": "x"}, by="operator")) == ["status"]
    assert faults(await door.post(f"{LIST}/dec_x", {"decision": "maybe"}, by="operator")) == ["decision"]
    for name in ("dec_nowhere", "%00"):
        problem(await door.get(f"{LIST}/{name}", by="operator"), 404, "decision_not_found")
        problem(await door.post(f"{LIST}/{name}", {"decision": "confirm"}, by="operator"), 404, "decision_not_found")
