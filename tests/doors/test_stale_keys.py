"""A key that was revoked a moment ago, by another node: what it could still loosen would stay loose, so it loosens nothing."""

from typing import Any

import pytest

from gateway.store import keys
from tests.doors.door import Door, problem
from tests.world import BOXES, PAT, TENANT

WORK = {
    "a mailbox is loosened": ("PATCH", "/v1/agent/mailboxes/{box}", {"config": {"cooldownMinutes": 0}}),
    "the tenant's settings are loosened": ("PATCH", "/v1/agent/config/settings", {"cooldownMinutes": 0}),
    "a suppression is lifted": ("DELETE", f"/v1/suppressions/{PAT}", None),
    "an agent's list is widened": ("PATCH", "/v1/agent/agents/a", {"allowedRecipientDomains": None}),
    "a mailbox is made": ("POST", "/v1/agent/mailboxes", {"address": "new@elsewhere.example.org"}),
}


@pytest.mark.parametrize("what", WORK)
async def test_a_key_that_was_just_revoked_elsewhere_loosens_nothing(door: Door, what: str) -> None:
    method, path, body = WORK[what]
    await door.world.suppress(PAT, "complaint")
    door.add_key("second", scopes=keys.SCOPES)
    assert (await door.post("/v1/agent/whoami", {}, by="second")).status_code == 200  # it is believed for a second
    door.world.store.write((TENANT,), lambda tx: keys.revoke_key(tx, TENANT, door.ids["second"]))
    before = _kept(door)

    answer = await door.call(method, path.format(box=door.world.box[BOXES[0]].id), body, by="second")

    problem(answer, 401, "unauthorized")
    assert _kept(door) == before


def _kept(door: Door) -> Any:  # noqa: ANN401
    rows = door.world.rows()
    return {name: rows[name] for name in ("mailboxes", "suppressions", "agents")}


async def test_a_good_key_does(door: Door) -> None:
    box = door.world.box[BOXES[0]].id

    answer = await door.call("PATCH", f"/v1/agent/mailboxes/{box}", {"config": {"cooldownMinutes": 0}}, by="operator")

    assert answer.status_code == 200, answer.text
