"""Adoption: who is invited makes its own key once, within what the inviting key may give then."""

import asyncio
from typing import Any

import httpx
import pytest

from gateway.core.errors import ConflictError
from gateway.doors.limits import GUESSES
from gateway.store import invites, keys
from tests.doors.door import Door, faults, problem
from tests.world import BOXES, TENANT

INVITE = "/v1/agent/adopt/invite"
PENDING = "/v1/agent/adopt/pending"
CLAIM = "/v1/adopt/claim"
WHOAMI = "/v1/agent/whoami"
HUMAN = "human_decision_required"


@pytest.fixture(autouse=True)
def manager(door: Door) -> None:
    """A key that manages one mailbox, and one that manages all."""
    door.add_key("manager", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,))
    door.add_key("all", scopes=("manage",))


async def invited(door: Door, *, by: str = "all", **wish: Any) -> dict[str, Any]:
    answer = await door.post(INVITE, {"label": "newcomer"} | wish, by=by)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def claim(door: Door, token: str) -> httpx.Response:
    return await door.post(CLAIM, {"token": token}, by=None)


async def claimed(door: Door, token: str) -> dict[str, Any]:
    answer = await claim(door, token)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_an_invited_agent_makes_its_key_and_acts_as_itself(door: Door) -> None:
    invite = await invited(door, scopeAllMailboxes=True, label="Sales  east")

    made = await claimed(door, invite["token"])

    assert invite["token"].startswith(invite["tokenPrefix"])
    assert invite["token"].startswith("ga_inv_")
    assert set(made) >= {"apiKey", "tenantId", "keyId", "label", "agentId"}
    assert (made["tenantId"], made["label"], made["agentName"]) == (TENANT, "Sales  east", "Sales east")
    who = (await door.get(WHOAMI, by=made["apiKey"])).json()
    assert (who["key_id"], who["agent_id"]) == (made["keyId"], made["agentId"])
    assert (who["scopes"], who["scope_all_mailboxes"]) == (["read", "send"], True)
    listed = (await door.get("/v1/agent/keys", by="all")).json()
    assert next(one for one in listed if one["id"] == made["keyId"])["createdByKeyId"] == door.ids["all"]


async def test_neither_token_nor_key_is_kept_as_such(door: Door) -> None:
    invite = await invited(door)
    made = await claimed(door, invite["token"])

    kept = str(door.world.rows())

    assert invite["token"] not in kept
    assert made["apiKey"] not in kept
    assert keys.key_hash(invite["token"]) in kept


async def test_an_invitation_is_claimed_once(door: Door) -> None:
    invite = await invited(door)

    answers = await asyncio.gather(*(claim(door, invite["token"]) for _ in range(4)))

    assert sorted(one.status_code for one in answers) == [200, 409, 409, 409]
    for one in answers:
        if one.status_code == 409:
            problem(one, 409, "invite_claimed")
    assert len([row for row in door.world.rows()["api_keys"] if "newcomer" in row]) == 1


async def test_two_nodes_that_claim_at_once_make_one_key(door: Door) -> None:
    invite = await invited(door)
    other = door.world.node(threads=True)
    wish = invites.Claim(TENANT, invite["id"], "newcomer", lambda *_: None)

    from gateway.store.writer import Rank

    both = await asyncio.gather(
        claim(door, invite["token"]),
        other.writer.do(Rank.FORBID, (TENANT,), invites.claim, wish),
        return_exceptions=True,
    )

    won = [isinstance(both[0], httpx.Response) and both[0].status_code == 200, isinstance(both[1], tuple)]
    assert sorted(won) == [False, True]
    assert won[1] or isinstance(both[1], ConflictError)
    assert len([row for row in door.world.rows()["api_keys"] if "newcomer" in row]) == 1


async def test_an_expired_or_revoked_invitation_makes_no_key(door: Door) -> None:
    short, gone = await invited(door, expiresMinutes=1), await invited(door, label="gone")
    await door.call("DELETE", f"/v1/agent/adopt/{gone['id']}", by="all")
    door.world.advance(61)

    problem(await claim(door, short["token"]), 410, "invite_expired")
    problem(await claim(door, gone["token"]), 404, "invite_not_found")
    assert (await door.get(PENDING, by="all")).json() == []


async def test_an_invitation_lasts_a_day_unless_it_says_otherwise(door: Door) -> None:
    invite = await invited(door)
    door.world.advance(23 * 3600)
    (still,) = (await door.get(PENDING, by="all")).json()
    door.world.advance(3601)

    assert still["id"] == invite["id"]
    problem(await claim(door, invite["token"]), 410, "invite_expired")


async def test_invitations_are_listed_without_tokens_and_taken_back_once(door: Door) -> None:
    first, second = await invited(door, label="first"), await invited(door, label="second", by="manager")
    used = await invited(door, label="used")
    await claimed(door, used["token"])

    listed = await door.get(PENDING, by="all")
    gone = (await door.call("DELETE", f"/v1/agent/adopt/{first['id']}", by="all")).json()

    assert [one["label"] for one in listed.json()] == ["second", "first"]
    assert second["token"] not in listed.text
    assert gone == {"revoked": True, "id": first["id"]}
    for name in (first["id"], "inv_nowhere", "%00"):
        problem(await door.call("DELETE", f"/v1/agent/adopt/{name}", by="all"), 404, "invite_not_found")
    problem(await door.call("DELETE", f"/v1/agent/adopt/{used['id']}", by="all"), 409, "invite_claimed")
    problem(await door.get(PENDING, by="manager"), 403, "mailbox_scope_denied")
    problem(await door.call("DELETE", f"/v1/agent/adopt/{second['id']}", by="manager"), 403, "mailbox_scope_denied")


# --- reach -----------------------------------------------------------------------------------------------------------


async def test_a_manager_invites_within_its_own_mailboxes(door: Door) -> None:
    invite = await invited(door, by="manager", scopes=["send"])

    made = await claimed(door, invite["token"])

    who = (await door.get(WHOAMI, by=made["apiKey"])).json()
    assert (who["scopes"], [box["address"] for box in who["mailboxes"]]) == (["send"], [BOXES[1]])


@pytest.mark.parametrize(
    ("wider", "loosens"),
    [
        ({"scopes": ["operator"]}, ["scopes"]),
        ({"scopeAllMailboxes": True}, ["mailboxes"]),
        ({"mailboxes": [BOXES[0]]}, ["mailboxes"]),
    ],
)
async def test_what_is_wider_a_person_invites(door: Door, wider: dict[str, Any], loosens: list[str]) -> None:
    refused = problem(await door.post(INVITE, {"label": "wide"} | wider, by="manager"), 403, HUMAN)

    done = (await door.post(refused["decisionUrl"], {"decision": "confirm"}, by="operator")).json()

    assert (refused["kind"], refused["id"], refused["loosens"]) == ("adopt-invite", "new", loosens)
    made = await claimed(door, done["result"]["body"]["token"])
    who = (await door.get(WHOAMI, by=made["apiKey"])).json()
    assert ("operator" in who["scopes"]) == ("scopes" in wider)
    assert who["scope_all_mailboxes"] == ("scopeAllMailboxes" in wider)


async def test_a_key_of_one_agent_invites_no_other_agent_by_itself(door: Door) -> None:
    door.add_key("bound", scopes=("manage",), agent="a")

    refused = problem(await door.post(INVITE, {"label": "second self"}, by="bound"), 403, HUMAN)

    assert (refused["kind"], refused["loosens"]) == ("adopt-invite", ["agentName"])
    problem(await door.post(INVITE, {"label": "x"}), 403, "insufficient_scope")


@pytest.mark.parametrize("lost", ["revoked", "scopes", "mailboxes"])
async def test_an_invitation_is_worth_no_more_than_the_key_behind_it(door: Door, lost: str) -> None:
    invite = await invited(door)
    path = f"/v1/agent/keys/{door.ids['all']}"
    less = {"scopes": ["read"]} if lost == "scopes" else {"mailboxes": [BOXES[1]]}
    if lost == "revoked":
        await door.call("DELETE", path, by="operator")
    else:
        await door.call("PATCH", path, less, by="operator")

    problem(await claim(door, invite["token"]), 403, "invite_beyond_key")

    assert not [row for row in door.world.rows()["api_keys"] if "newcomer" in row]
    assert not [row for row in door.world.rows()["agents"] if "newcomer" in row]


async def test_a_key_that_has_just_become_less_elsewhere_invites_nobody(door: Door) -> None:
    await door.get(WHOAMI, by="all")  # believed here for a second
    door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, door.ids["all"]))

    problem(await door.post(INVITE, {"label": "late"}, by="all"), 401, "unauthorized")

    assert door.world.rows()["invites"] == []


async def test_a_claimed_key_shares_the_limit_of_the_one_behind_it(door: Door) -> None:
    door.add_key("slow", scopes=("manage",), per_minute=3)
    invite = await invited(door, by="slow")
    made = await claimed(door, invite["token"])

    codes = [(await door.get(WHOAMI, by=made["apiKey"])).status_code for _ in range(3)]

    assert codes == [200, 200, 429]


# --- names -----------------------------------------------------------------------------------------------------------


async def test_a_name_that_a_key_answers_for_gets_a_number(door: Door) -> None:
    made = [await claimed(door, (await invited(door, agentName="a"))["token"]) for _ in range(2)]

    assert [one["agentName"] for one in made] == ["a-2", "a-3"]
    assert door.world.agent["a"] not in {one["agentId"] for one in made}


async def test_a_registered_agent_without_a_key_is_taken_over_where_it_is_named(door: Door) -> None:
    by_name = await claimed(door, (await invited(door, agentName="c"))["token"])
    await door.post("/v1/agent/register", {"agentName": "labelled"}, by="free")
    by_label = await claimed(door, (await invited(door, label="labelled"))["token"])

    assert by_name["agentId"] == door.world.agent["c"]
    assert by_label["agentName"] == "labelled-2"


@pytest.mark.parametrize(
    ("label", "name"), [("x" * 200, "x" * 120), ("agent_12ab", "agent agent_12ab"), (" ", "agent")]
)
async def test_a_label_is_made_a_name_that_an_agent_may_have(door: Door, label: str, name: str) -> None:
    assert (await claimed(door, (await invited(door, label=label))["token"]))["agentName"] == name


async def test_after_many_of_one_name_the_next_is_told_apart_by_chance(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invites, "TRIED_MAX", 2)

    name = (await claimed(door, (await invited(door, agentName="a"))["token"]))["agentName"]

    assert len(name) == len("a-") + 12


# --- strangers -------------------------------------------------------------------------------------------------------


async def test_wrong_tokens_are_counted_like_wrong_keys(door: Door) -> None:
    invite = await invited(door)

    for number in range(GUESSES):
        problem(await claim(door, f"ga_inv_{number:043d}"), 404, "invite_not_found")

    problem(await claim(door, invite["token"]), 429, "too_many_wrong_keys")
    problem(await door.get(WHOAMI, by="gk_live_" + "x" * 43), 429, "too_many_wrong_keys")


@pytest.mark.parametrize(
    ("body", "named"), [({}, ["token"]), ({"token": ""}, ["token"]), ({"token": "ga_inv_x", "key": "y"}, ["key"])]
)
async def test_a_malformed_claim_is_refused_by_name(wire: Door, body: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(CLAIM, body, by=None)) == named


async def test_a_claim_has_a_size_a_type_and_one_tenant(door: Door) -> None:
    invite = await invited(door)

    problem(await door.post(CLAIM, {"token": "x" * 70_000}, by=None), 413, "body_too_large")
    typed = {"headers": {"Content-Type": "text/plain"}, "content": b"{}"}
    problem(await door.client.post(CLAIM, **typed), 415, "unsupported_media_type")  # type: ignore[arg-type]
    assert faults(await door.client.post(CLAIM)) == ["body"]
    wrong = {"token": invite["token"], "tenantId": "other"}
    problem(await door.post(CLAIM, wrong, by=None), 404, "invite_not_found")
    assert (await door.post(CLAIM, wrong | {"tenantId": TENANT}, by=None)).status_code == 200


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["label"]),
        ({"label": "x", "expiresMinutes": 0}, ["expiresMinutes"]),
        ({"label": "x", "expiresMinutes": 43_201}, ["expiresMinutes"]),
        ({"label": "x", "agentName": "agent_12ab"}, ["agentName"]),
        ({"label": "x", "scopeAllMailboxes": True, "mailboxes": ["y"]}, ["mailboxes"]),
        ({"label": "x", "transactional": True}, ["transactional"]),
    ],
)
async def test_a_malformed_invitation_is_refused_by_name(wire: Door, body: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(INVITE, body, by="operator")) == named


async def test_what_happens_to_invitations_is_told(door: Door) -> None:
    invite, gone = await invited(door), await invited(door)
    made = await claimed(door, invite["token"])
    await door.call("DELETE", f"/v1/agent/adopt/{gone['id']}", by="all")

    told = [str(row) for row in door.world.rows()["events"] if "invite." in str(row)]

    for name, about in (
        ("invite.created", invite["id"]),
        ("invite.claimed", made["keyId"]),
        ("invite.revoked", gone["id"]),
    ):
        assert [one for one in told if name in one and about in one], name
    assert not [one for one in told if invite["token"] in one or made["apiKey"] in one]


# --- limits and bindings ---------------------------------------------------------------------------------------------


async def test_a_confirmed_invitation_keeps_the_limit_of_the_key_that_asked(door: Door) -> None:
    door.add_key("limited", scopes=("manage",), per_minute=60, agent="b")
    refused = problem(await door.post(INVITE, {"label": "child"}, by="limited"), 403, HUMAN)

    answer = (await door.post(refused["decisionUrl"], {"decision": "confirm"}, by="operator")).json()

    assert answer["status"] == "confirmed", answer
    made = await claimed(door, answer["result"]["body"]["token"])
    assert (await door.get(WHOAMI, by=made["apiKey"])).json()["requests_per_minute"] == 60


async def test_an_invitation_may_have_a_lower_limit_and_a_higher_one_by_a_person(door: Door) -> None:
    door.add_key("limited", scopes=("manage",), per_minute=60)
    invite = await invited(door, by="limited", requestsPerMinute=6)
    assert invite["requestsPerMinute"] == 6
    made = await claimed(door, invite["token"])
    assert (await door.get(WHOAMI, by=made["apiKey"])).json()["requests_per_minute"] == 6

    more = problem(await door.post(INVITE, {"label": "x", "requestsPerMinute": 61}, by="limited"), 403, HUMAN)

    assert (more["kind"], more["loosens"]) == ("adopt-invite", ["requestsPerMinute"])


@pytest.mark.parametrize(
    ("asked", "then", "has"), [(None, 2, 2), (5, 2, 2), (2, 5, 2), (3, None, 3), (None, None, None)]
)
async def test_a_claimed_key_has_the_limit_that_the_inviting_key_has_by_then(
    door: Door, asked: int | None, then: int | None, has: int | None
) -> None:
    limit: dict[str, Any] = {} if asked is None else {"requestsPerMinute": asked}
    invite = await invited(door, **limit)
    await door.call("PATCH", f"/v1/agent/keys/{door.ids['all']}", {"requestsPerMinute": then}, by="operator")

    made = await claimed(door, invite["token"])

    assert (await door.get(WHOAMI, by=made["apiKey"])).json()["requests_per_minute"] == has


async def test_a_key_that_was_bound_meanwhile_has_invited_nobody(door: Door) -> None:
    invite = await invited(door)
    await door.post("/v1/agent/register", {"agentName": "solo", "bindKey": True}, by="all")

    problem(await claim(door, invite["token"]), 403, "invite_beyond_key")

    assert not [row for row in door.world.rows()["api_keys"] if "newcomer" in row]
