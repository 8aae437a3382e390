"""A client that knows nothing but the public API page of the service whose clients we want to take over.

Its field names, its 200 with `blocked`, its statuses. Where our own rules differ from that page (a repeat gives the first
result, one cooldown for each person) they are those of docs/semantics.md section 9.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.record import instant
from tests.doors.door import Door, faults, problem
from tests.world import TENANT

Answer = dict[str, Any]
SENT = {"queued", "scheduled", "blocked", "pending_approval", "error"}
"""The statuses that the page knows of a send."""


@dataclass(slots=True)
class Client:
    """The client: tenantId in the body of what it posts and in the query of all else, camelCase, 200 unless it is wrong."""

    door: Door
    key: str = "free"
    agent: str = ""

    async def ask(self, method: str, path: str, status: int = 200, **fields: Any) -> Any:  # noqa: ANN401
        """Calls a route; gives the body of its answer."""
        about = {"tenantId": TENANT} | fields
        headers = {"X-Agent-Id": self.agent} if self.agent else {}
        if method in ("GET", "DELETE"):
            answer = await self.door.call(method, path, by=self.key, params=about, headers=headers)
        else:
            answer = await self.door.call(method, path, about, by=self.key, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def request_send(self, to: str, key: str, **fields: Any) -> Answer:
        """The recommended way to send: an inline mail under a dedupe key."""
        payload = {"subject": "Hello", "html": "<p>One</p>", "text": "One"}
        usual = {"recipientEmail": to, "templateId": "_default", "dedupeKey": key, "payload": payload}
        body: Answer = await self.ask("POST", "/v1/agent/request-send", **usual | fields)
        assert body["status"] in SENT
        assert body["requestId"]
        assert isinstance(body["policyTrace"]["decision"]["allow"], bool)
        assert all({"rule", "passed"} <= set(line) for line in body["policyTrace"]["auditEvents"])
        return body

    async def batch(self, *sends: tuple[str, str]) -> Answer:
        """Many mails at once."""
        items = [
            {"recipientEmail": to, "dedupeKey": key, "payload": {"subject": "Hello", "text": "Two"}}
            for to, key in sends
        ]
        body: Answer = await self.ask("POST", "/v1/agent/batch/request-send", templateId="_default", sends=items)
        return body


@pytest.fixture
def client(door: Door) -> Client:
    """A client with a key that is bound to no agent."""
    return Client(door)


async def test_it_sends_and_reads_back_what_became_of_it(client: Client) -> None:
    sent = await client.request_send("pat@example.net", "welcome-pat-1", sendReason="signed up")
    by_id = await client.ask("GET", f"/v1/agent/requests/{sent['requestId']}")
    by_key = await client.ask("GET", "/v1/agent/requests", idempotencyKey="welcome-pat-1")
    trace = await client.ask("GET", f"/v1/ops/trace/{sent['requestId']}")

    assert sent["status"] == "queued"
    assert "reason" not in sent
    assert sent["policyTrace"]["decision"] == {"allow": True}
    assert by_id["requestId"] == sent["requestId"]
    assert by_key["requestId"] == sent["requestId"]
    about = trace["request"]
    assert (about["id"], about["recipientEmail"], about["status"]) == (sent["requestId"], "pat@example.net", "queued")
    assert about["deliveryStatus"] == "queued"
    assert trace["policyDecision"]["allow"] is True
    assert trace["policyDecision"]["auditEvents"]
    assert all({"eventType", "occurredAt"} <= set(event) for event in trace["deliveryEvents"])


async def test_it_lists_what_it_has_sent(client: Client) -> None:
    sent = [await client.request_send(f"p{n}@example.net", f"k-{n}") for n in range(3)]

    listed = await client.ask("GET", "/v1/agent/requests", limit=2)

    assert [one["requestId"] for one in listed["items"]] == [sent[2]["requestId"], sent[1]["requestId"]]


async def test_a_refusal_is_a_200_that_says_blocked(client: Client) -> None:
    await client.request_send("pat@example.net", "one")

    body = await client.request_send("pat@example.net", "two")

    assert (body["status"], body["reason"]) == ("blocked", "cooldown")
    assert body["policyTrace"]["decision"] == {"allow": False, "reason": "cooldown"}
    assert body["cooldownExpiresAt"]
    failed = [line["rule"] for line in body["policyTrace"]["auditEvents"] if not line["passed"]]
    assert "cooldown" in failed


async def test_a_repeat_under_its_dedupe_key_gets_the_first_result(client: Client) -> None:
    first = await client.request_send("pat@example.net", "one")

    again = await client.request_send("pat@example.net", "one")

    assert (again["requestId"], again["status"]) == (first["requestId"], "queued")


async def test_the_alias_of_the_dedupe_key_is_the_same_key(client: Client) -> None:
    first = await client.request_send("pat@example.net", "one")

    again = await client.request_send("pat@example.net", "one", idempotencyKey="one")

    assert again["requestId"] == first["requestId"]


async def test_a_simulation_tells_what_would_happen_and_changes_nothing(client: Client) -> None:
    fields: Answer = {"templateId": "_default", "recipientEmail": "pat@example.net"}
    before = await client.ask("POST", "/v1/agent/simulate-send", **fields)
    await client.request_send("pat@example.net", "one")
    after = await client.ask("POST", "/v1/agent/simulate-send", **fields)

    assert (before["wouldAllow"], before["simulation"], before["rateLimited"]) == (True, True, False)
    assert before["resolvedFromAddress"]
    assert before["policyContext"]["isCooldownHit"] is False
    assert (after["wouldAllow"], after["reason"]) == (False, "cooldown")
    assert after["policyContext"]["isCooldownHit"] is True
    assert after["cooldownExpiresAt"]


async def test_a_batch_answers_for_each_item_in_its_order(client: Client) -> None:
    await client.request_send("pat@example.net", "one")

    body = await client.batch(
        ("p1@example.net", "b-1"), ("pat@example.net", "b-2"), ("p1@example.net", "b-1"), ("nobody", "b-4")
    )

    assert (body["total"], body["queued"], body["blocked"]) == (4, 2, 1)
    assert body["batchId"]
    results = body["results"]
    assert [one["recipientEmail"] for one in results] == [
        "p1@example.net",
        "pat@example.net",
        "p1@example.net",
        "nobody",
    ]
    assert [one["status"] for one in results] == ["queued", "blocked", "queued", "error"]
    assert results[1]["reason"] == "cooldown"
    assert results[2]["requestId"] == results[0]["requestId"]


async def test_a_batch_of_more_than_500_is_refused_whole(client: Client) -> None:
    many = [{"recipientEmail": f"p{n}@example.net", "dedupeKey": f"k{n}"} for n in range(501)]

    body = await client.ask("POST", "/v1/agent/batch/request-send", 400, templateId="_default", sends=many)

    assert (body["error"], body["max"], body["received"]) == ("batch_too_large", 500, 501)
    await client.ask("GET", "/v1/agent/requests", 404, idempotencyKey="k0")


async def test_a_batch_is_simulated_by_its_addresses(client: Client) -> None:
    await client.request_send("pat@example.net", "one")

    people = ["pat@example.net", "p1@example.net"]
    body = await client.ask("POST", "/v1/agent/simulate-batch", templateId="_default", recipientEmails=people)

    assert (body["total"], body["wouldAllow"], body["wouldBlock"]) == (2, 1, 1)
    assert [(one["recipientEmail"], one["wouldAllow"]) for one in body["results"]] == [
        ("pat@example.net", False),
        ("p1@example.net", True),
    ]
    assert body["results"][0]["reason"] == "cooldown"


async def test_a_suppressed_person_gets_nothing_until_the_entry_is_gone(client: Client) -> None:
    client.key = "operator"
    entry = await client.ask(
        "POST", "/v1/suppressions", recipientEmail="Pat@Example.net", scope="tenant", reasonCode="manual_dnc"
    )
    check = await client.ask("GET", "/v1/suppressions/check", email="pat@example.net")
    listed = await client.ask("GET", "/v1/suppressions", recipientEmail="pat@example.net")
    blocked = await client.request_send("pat@example.net", "one")
    simulated = await client.ask(
        "POST", "/v1/agent/simulate-send", templateId="_default", recipientEmail="pat@example.net"
    )
    await client.ask("DELETE", f"/v1/suppressions/{entry['id']}")
    sent = await client.request_send("pat@example.net", "one")

    assert (check["email"], check["suppressed"], check["matchedOn"]) == ("pat@example.net", True, "email")
    assert check["reason"] == "manual_dnc"
    assert [one["id"] for one in listed] == [entry["id"]]
    assert (blocked["status"], blocked["reason"]) == ("blocked", "suppressed")
    assert simulated["suppressionInfo"] == {"scope": "tenant", "reasonCode": "manual_dnc"}
    assert simulated["policyContext"]["isSuppressed"] is True
    assert sent["status"] == "queued"


async def test_it_schedules_and_cancels(client: Client) -> None:
    later = instant(client.door.world.now + timedelta(hours=1))
    sent = await client.request_send("pat@example.net", "one", scheduledAt=later)
    cancelled = await client.ask("DELETE", f"/v1/agent/sends/{sent['requestId']}")
    again = await client.ask("DELETE", f"/v1/agent/sends/{sent['requestId']}")

    assert sent["status"] == "scheduled"
    assert sent["scheduledAt"]
    assert cancelled["cancelled"] is True
    assert (await client.ask("GET", f"/v1/agent/requests/{sent['requestId']}"))["status"] == "cancelled"
    assert again.get("reason") in (None, "not_cancellable")


async def test_two_agents_do_not_write_to_one_person(client: Client) -> None:
    agents = [await client.ask("POST", "/v1/agent/register", agentName=name, agentRole="sales") for name in ("x", "y")]
    first, second = (agent["id"] for agent in agents)
    lease = await client.ask(
        "POST", "/v1/agent/coordination/lease", agentId=first, contactEmail="pat@example.net", durationMinutes=0.5
    )
    conflict = await client.ask("POST", "/v1/agent/coordination/lease", agentName="y", contactEmail="pat@example.net")
    client.agent = second
    blocked = await client.request_send("pat@example.net", "one")
    client.agent = first
    sent = await client.request_send("pat@example.net", "two")
    client.agent = ""
    leases = await client.ask("GET", "/v1/agent/coordination/leases")
    released = await client.ask("DELETE", f"/v1/agent/coordination/lease/{lease['id']}")

    assert agents[0] | {"agentName": "x", "agentRole": "sales", "apiKeyBinding": "not_requested"} == agents[0]
    assert (lease["agentId"], lease["contactEmail"]) == (first, "pat@example.net")
    assert conflict["conflict"] is True
    assert (conflict["leaseHolder"]["agentId"], conflict["leaseHolder"]["agentName"]) == (first, "x")
    assert (blocked["status"], blocked["reason"]) == ("blocked", "lease_conflict")
    assert blocked["leaseHolder"]["agentName"] == "x"
    assert sent["status"] == "queued"
    assert [one["id"] for one in leases] == [lease["id"]]
    assert released["released"] is True


async def test_it_learns_its_tenant_from_its_key(client: Client) -> None:
    answer = await client.door.post("/v1/agent/whoami", {}, by="free")

    assert answer.status_code == 200
    assert answer.json()["tenant_id"] == TENANT


async def test_errors_are_statuses_with_a_slug(client: Client) -> None:
    send = "/v1/agent/request-send"
    mail = {"recipientEmail": "pat@example.net", "templateId": "_default", "payload": {"text": "One"}}

    problem(await client.door.post(send, mail, by=None), 401, "unauthorized")
    problem(await client.door.post(send, mail | {"tenantId": "another"}, by="free"), 403, "tenant_mismatch")
    problem(await client.door.get("/v1/agent/requests/req_nothing", by="free"), 404, "send_request_not_found")
    problem(await client.door.post(send, mail | {"templateId": "welcome"}, by="free"), 404, "template_not_found")
    assert faults(await client.door.post(send, mail | {"recipientEmail": "nobody"}, by="free")) == ["recipientEmail"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"deferOnWarmup": True}, ["deferOnWarmup"]),
        ({"humanizeStyle": "casual"}, ["humanizeStyle"]),
        ({"humanizeProvider": "anthropic"}, ["humanizeProvider"]),
        ({"humanize": True}, ["humanize"]),
        (
            {"deferOnWarmup": False, "humanizeStyle": "friendly", "humanize": True},
            ["deferOnWarmup", "humanize", "humanizeStyle"],
        ),
    ],
)
async def test_documented_fields_without_an_effect_here_are_refused_by_name(
    client: Client, fields: Answer, named: list[str]
) -> None:
    mail = {
        "recipientEmail": "pat@example.net",
        "templateId": "_default",
        "dedupeKey": "one",
        "payload": {"text": "One"},
    }

    answer = await client.door.post("/v1/agent/request-send", mail | fields, by="free")

    assert sorted(faults(answer)) == named
    await client.ask("GET", "/v1/agent/requests", 404, idempotencyKey="one")


async def test_documented_fields_whose_effect_is_already_so_are_taken(client: Client) -> None:
    sent = await client.request_send("pat@example.net", "one", humanize=False, templateId="_followup")

    assert sent["status"] == "queued"
