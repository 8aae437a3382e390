"""Malformed requests: every bad field is named, nothing is repaired, nothing is stored, nothing is a 500."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.address import KeyRules
from gateway.doors.asked import COMPOSED, SendRequest
from gateway.doors.fields import PEOPLE_MAX, Reader
from gateway.doors.http.inlet import FAULTS_MAX, shaped
from gateway.doors.refusal import Refusal
from tests.doors.door import SEND, SIMULATE, Door, a_door, a_send, b64, faults, problem
from tests.world import PAT, World

CONTROLS = [chr(code) for code in (*range(0x20), 0x7F)]
EVIL = "mallory@example.net"

BAD: list[tuple[str, Any]] = [
    # types are not coerced
    ("fencingToken", True),
    ("fencingToken", 1.5),
    ("fencingToken", 1.0),
    ("fencingToken", "7"),
    ("fencingToken", -1),
    ("fencingToken", 2**63),
    ("dryRun", 1),
    ("dryRun", "true"),
    ("subject", 5),
    ("text", ["a"]),
    ("html", {}),
    ("to", {}),
    ("to", 5),
    ("kind", "Outreach"),
    ("kind", "marketing"),
    ("humanize", True),
    ("humanize", "false"),
    ("mailboxId", ""),
    ("sendReason", ""),
    ("sendReason", "x" * 1001),
    # keys
    ("idempotencyKey", ""),
    ("idempotencyKey", " once"),
    ("idempotencyKey", "two words"),
    ("idempotencyKey", "\u00fc"),
    ("idempotencyKey", "x" * 256),
    ("dedupeKey", "another"),
    ("threadId", "x" * 256),
    # times
    ("scheduledAt", "tomorrow"),
    ("scheduledAt", "2026-11-30"),
    ("scheduledAt", "2026-11-30T12:00:00"),
    ("scheduledAt", "2026-11-30 12:00:00Z"),
    ("scheduledAt", "2026-02-30T12:00:00Z"),
    ("scheduledAt", "2026-11-30T25:00:00Z"),
    ("scheduledAt", "0001-01-01T00:00:00+14:00"),
    ("scheduledAt", "9999-12-31T23:59:59-14:00"),
    ("scheduledAt", "9999-12-31T23:59:59Z"),
    ("scheduledAt", 1_796_040_000),
    # what is not there, or not yet
    ("deferOnWarmup", False),
    ("humanizeStyle", "casual"),
    ("envelope", {"size": f"100\r\nRCPT TO:<{EVIL}>"}),
    ("envelope", {"mailFrom": "agent@gw.example.com"}),
    ("dsn", {"envid": f"x\r\nRCPT TO:<{EVIL}>"}),
    ("fencingtoken", 1),
    ("Subject", "hello"),
    ("from_", "agent@gw.example.com"),
    ("scheduled_at", "2026-11-30T12:00:00Z"),
    # references
    ("inReplyTo", "two words"),
    ("inReplyTo", "<a@b>\r\nBcc: x"),
    ("inReplyTo", ""),
    ("inReplyTo", "<a@b"),
]


@pytest.mark.parametrize(("member", "value"), BAD)
async def test_a_bad_member_is_named(wire: Door, member: str, value: object) -> None:
    answer = await wire.post(SEND, a_send() | {member: value})

    assert [field.partition("[")[0] for field in faults(answer)] == [member]
    assert wire.world.rows()["sends"] == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        " ",
        "pat",
        "pat@",
        "@example.net",
        "pat@example",
        "pat@example.net ",
        " pat@example.net",
        "pat @example.net",
        "pat@@example.net",
        "pat@exa mple.net",
        "pat@example.net, mallory@example.net",
        "pat@example.net;mallory@example.net",
        "<pat@example.net",
        "pat@example.net>",
        "<>",
        '"mallory@example.net x"@example.net',
        "a(comment)@example.net",
        "<@relay.example.org:pat@example.net>",
        "pat@[127.0.0.1]",
        "pat@example..net",
        ".pat@example.net",
        "pat@-example.net",
        "pat@example.net>\r\nRCPT TO:<mallory@example.net",
        "pat@example.net\n",
        "p\u0000at@example.net",
        "pat\u2028@example.net",
        "pat@ex\uff41mple.net",
        "=?utf-8?q?mallory=40example.net?= <pat@example.net",
        f'"A\r\nBcc: {EVIL}" <pat@example.net>',
        f"=?utf-8?q?A=0D=0ABcc=3A_{EVIL}?= <pat@example.net>",
        "x" * 65 + "@example.net",
        "pat@" + "x" * 64 + ".example.net",
        "x" * 1_000_000,
        "pat@team.test",
        "pat@mailpit.local",
        "pat@localhost",
        "pat@xn--ls8h.example.net.invalid",
    ],
)
async def test_what_is_no_address_is_refused_in_every_place_and_never_repaired(wire: Door, address: str) -> None:
    places: dict[str, Any] = {"to": ["ok@example.net", address], "cc": [address], "bcc": [address], "replyTo": address}
    places |= {"from": address, "fencingTokens": {address: 1}}

    named = faults(await wire.post(SEND, a_send(**places)))

    assert {name.partition(".")[0] for name in named} == {
        "to[1]",
        "cc[0]",
        "bcc[0]",
        "replyTo[0]",
        "from",
        "fencingTokens",
    }
    assert faults(await wire.post(SEND, a_send(to=..., recipientEmail=address))) == ["recipientEmail"]
    assert wire.world.rows()["sends"] == []


async def test_special_use_domains_are_let_in_by_name(sqlite_world: World) -> None:
    async with a_door(sqlite_world, allow_special_use="test,localhost") as door:
        await door.accepted(to=["pat@team.test", "pat@localhost"])

        assert faults(await door.send(to="pat@mailpit.local")) == ["to[0]"]


@pytest.mark.parametrize("control", CONTROLS)
async def test_control_characters_are_refused_in_every_text(wire: Door, control: str) -> None:
    evil = f"a{control}b"
    lines = {"subject": evil, "sendReason": evil, "threadId": evil, "campaignAction": evil, "templateId": f"_{evil}"}
    lines |= {"mailboxId": evil, "tenantId": evil, "idempotencyKey": evil}

    named = faults(await wire.post(SEND, a_send(**lines)))

    assert set(named) == set(lines)
    bodies = await wire.post(SEND, a_send(text=evil, html=evil))
    assert bodies.status_code == 200 if control in "\t\r\n" else faults(bodies) == ["text", "html"]


BREAKS = ("Hi\r\nBcc: x", "Hi\nX: y", "Report\n", "Report\r\n", *(f"a{c} Bcc: x" for c in "\f\v\x85\u2028\u2029\x1c"))


@pytest.mark.parametrize("subject", BREAKS)
async def test_nothing_gets_out_of_a_subject(wire: Door, subject: str) -> None:
    assert faults(await wire.send(subject=subject)) == ["subject"]
    assert faults(await wire.send(subject=..., text=..., payload={"subject": subject})) == ["payload.subject"]


async def test_nothing_gets_out_of_an_encoded_word(wire: Door) -> None:
    evil = f"=?utf-8?q?x=0D=0ABcc=3A_{EVIL}?="

    assert faults(await wire.send(subject=evil)) == ["subject"]
    assert faults(await wire.send(from_=f"{evil} <agent@gw.example.com>")) == ["from"]
    assert faults(await wire.post(SEND, a_send(headers={"X-Ref": evil}))) == ["headers.X-Ref"]


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"X-Ref": "1\r\nBcc: x"}, ["headers.X-Ref"]),
        ({"X-Ref": "abc\n"}, ["headers.X-Ref"]),
        ({"X-Bad\r\nBcc": "x"}, ["headers.?"]),
        ({"": "x"}, ["headers.?"]),
        ({"X Y": "x"}, ["headers.X Y"]),
        ({"X:Y": "x"}, ["headers.X:Y"]),
        ({"Bcc": "x"}, ["headers.Bcc"]),
        ({"subject": "x"}, ["headers.subject"]),
        ({"X-Gateway-Agent": "x"}, ["headers.X-Gateway-Agent"]),
        ({"DKIM-Signature": "x"}, ["headers.DKIM-Signature"]),
        ({"Received": "x"}, ["headers.Received"]),
        ({"X-A": 5}, ["headers.X-A"]),
        ({"X-A": "x" * 10_001}, ["headers.X-A"]),
        ([{"name": "Bcc", "value": "x"}], ["headers[0].name"]),
        ([{"name": "X-A", "value": "a\nb"}], ["headers[0].value"]),
        ([{"name": "X-A"}], ["headers[0].value"]),
        ([{"name": "X-A", "value": "b", "more": 1}], ["headers[0].more"]),
        (["X-A: b"], ["headers[0]"]),
        ("X-A: b", ["headers"]),
        ({"X-A": "y" * 5000}, ["headers.X-A"]),
    ],
)
async def test_headers_of_the_callers_own_are_refused_by_name(wire: Door, headers: object, named: list[str]) -> None:
    assert faults(await wire.post(SEND, a_send() | {"headers": headers})) == named


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ({"filename": "a.txt"}, ["attachments[0].content"]),
        ({"content": b64("x")}, ["attachments[0].filename"]),
        ({"filename": "a.txt", "content": "x"}, ["attachments[0].content"]),
        ({"filename": "a.txt", "content": "aGk=\n"}, ["attachments[0].content"]),
        ({"filename": "a.txt", "content": "\u00fc==="}, ["attachments[0].content"]),
        ({"filename": "a.txt", "content": b64("x"), "id": "att_1"}, ["attachments[0].content"]),
        ({"filename": "a\r\nb", "content": b64("x")}, ["attachments[0].filename"]),
        ({"filename": "a.txt", "content": b64("x"), "contentType": "x"}, ["attachments[0].contentType"]),
        (
            {"filename": "a.txt", "content": b64("x"), "contentType": "text/plain\r\nX: y"},
            ["attachments[0].contentType"],
        ),
        ({"filename": "a.txt", "content": b64("x"), "contentId": "a b"}, ["attachments[0].contentId"]),
        ({"filename": "m.eml", "content": b64("\u00fc"), "contentType": "message/rfc822"}, ["attachments[0]"]),
        ("a.txt", ["attachments[0]"]),
    ],
)
async def test_files_that_cannot_travel_are_refused_by_name(wire: Door, file: object, named: list[str]) -> None:
    assert faults(await wire.send(attachments=[file])) == named


async def test_what_is_documented_and_not_supported_is_told_so(wire: Door) -> None:
    answer = await wire.send(humanizeProvider="anthropic", deferOnWarmup=True, bogus=1)

    words = {one["field"]: one["message"] for one in answer.json()["errors"]}
    assert "not supported" in words["humanizeProvider"]
    assert "not supported" in words["deferOnWarmup"]
    assert words["bogus"] == "is not known"


async def test_all_bad_members_are_named_at_once(wire: Door) -> None:
    body = {"to": ["x", "ok@example.net", "y"], "subject": 5, "text": "a\u0000", "payload": {"text": 1, "z": 1}}
    body |= {"bogus": 1, "dedupeKey": "1", "idempotencyKey": "2", "kind": "x", "headers": {"Bcc": "x"}}

    named = faults(await wire.post(SEND, body))

    assert set(named) == {
        *(
            "to[0]",
            "to[2]",
            "subject",
            "text",
            "payload.text",
            "payload.z",
            "bogus",
            "dedupeKey",
            "kind",
            "headers.Bcc",
        ),
    }


async def test_members_that_exclude_each_other_are_named(wire: Door) -> None:
    said = {"payload": {"text": "a", "subject": "b"}}
    assert faults(await wire.send(**said)) == ["subject", "text"]
    assert faults(await wire.send(subject=..., text=..., payload="x")) == ["payload"]
    assert faults(await wire.send(recipientEmail=PAT)) == ["to"]
    assert faults(await wire.send(to=...)) == ["to"]
    assert faults(await wire.send(to=[])) == ["to"]
    assert faults(await wire.send(text=...)) == ["text"]

    all_of_it = a_send(
        rawMessage=b64("From: agent@gw.example.com\r\n\r\nhi\r\n"), text="x", html="x", payload={"text": "y"}
    )
    all_of_it |= {"from": "agent@gw.example.com", "replyTo": PAT, "headers": {"X-A": "b"}, "inReplyTo": "a@b"}
    all_of_it |= {"references": ["a@b"], "attachments": [{"filename": "a", "content": ""}]}
    assert set(faults(await wire.post(SEND, all_of_it))) == set(COMPOSED)


async def test_what_a_refusal_says_repeats_nothing_of_what_was_sent(wire: Door) -> None:
    secret = "hunter2"

    answer = await wire.send(subject=f"{secret}\n", to=[f"{secret} x"], kind=secret, headers={secret + "\r": secret})

    assert answer.status_code == 422
    assert secret not in answer.text


async def test_there_is_an_end_to_the_number_of_faults(wire: Door) -> None:
    many = ["x"] * PEOPLE_MAX

    named = (await wire.post(SEND, a_send(to=many, cc=many))).json()["errors"]
    too_many = faults(await wire.post(SEND, a_send(to=[PAT] * (PEOPLE_MAX + 1))))

    assert len(named) == FAULTS_MAX
    assert too_many == ["to"]


async def test_a_template_that_is_not_there_is_told_so(wire: Door) -> None:
    problem(await wire.send(templateId="welcome"), 404, "template_not_found")

    assert (await wire.send(templateId="_default", humanize=False)).json()["status"] == "queued"


@pytest.mark.parametrize(
    "headers",
    [
        {"Idempotency-Key": "another"},
        {"Idempotency-Key": ""},
        {"Idempotency-Key": "two words"},
        {"Idempotency-Key": "x" * 256},
        {"X-Fencing-Token": "1.5"},
        {"X-Fencing-Token": "-1"},
        {"X-Fencing-Token": "true"},
        {"X-Fencing-Token": ""},
        {"X-Fencing-Token": str(2**63)},
        {"X-Fencing-Token": "9" * 1000},
        {"X-Fencing-Token": "\u0661"},
    ],
)
async def test_bad_headers_of_a_request_are_named(wire: Door, headers: dict[str, str]) -> None:
    encoded = {name: value.encode() for name, value in headers.items()}

    answer = await wire.send(headers=encoded)

    assert faults(answer) == list(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"List-Unsubscribe": "<https://example.com/\u00fc>"},
        {"list-unsubscribe": "<https://example.com/?q==?utf-8?q?x?=>"},
        {"List-Id": ""},
        {"List-Unsubscribe": "<https://example.com/1>", "list-unsubscribe": "<https://example.com/2>"},
        [{"name": "List-Id", "value": "<a.example.com>"}, {"name": "LIST-ID", "value": "<a.example.com>"}],
    ],
)
async def test_a_header_for_programs_is_refused_where_they_could_not_read_it(wire: Door, headers: object) -> None:
    answer = await wire.post(SEND, a_send() | {"headers": headers})

    (place,) = faults(answer)
    assert place.lower() in {"headers.list-unsubscribe", "headers.list-id"}


async def test_blanks_around_a_header_mean_nothing(door: Door) -> None:
    url = "<https://example.com/u>"
    first = await door.post(SEND, a_send(idempotencyKey="1") | {"headers": {"List-Unsubscribe": f" {url} "}})
    again = await door.post(SEND, a_send(idempotencyKey="1") | {"headers": {"List-Unsubscribe": url}})

    assert first.json()["status"] == "queued"
    assert again.json()["requestId"] == first.json()["requestId"]
    assert f"List-Unsubscribe: {url}\r\n".encode() in door.message(first.json()["requestId"])


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        ({"fencingToken": 1, "to": [PAT, "other@example.net"]}, ["fencingToken"]),
        ({"fencingToken": 1, "to": ..., "cc": PAT}, ["fencingToken"]),
        ({"fencingTokens": {"other@example.net": 1}}, ["fencingTokens"]),
        ({"fencingTokens": {PAT: 1, PAT.upper(): 2}}, ["fencingTokens"]),
        ({"fencingTokens": {PAT: 1, PAT.replace("example", "EXAMPLE"): 2}}, ["fencingTokens"]),
        ({"fencingToken": 1, "fencingTokens": {PAT: 2}}, ["fencingTokens"]),
    ],
)
async def test_a_token_is_for_one_recipient(wire: Door, tokens: dict[str, object], named: list[str]) -> None:
    assert faults(await wire.send(**tokens)) == named


async def test_a_token_in_header_and_body_must_be_the_same(wire: Door) -> None:
    assert faults(await wire.send(fencingToken=2, headers={"X-Fencing-Token": "1"})) == ["fencingToken"]


async def test_a_dry_run_refuses_the_same(wire: Door) -> None:
    for path in (SEND, SIMULATE):
        assert faults(await wire.post(path, a_send(dryRun=True, to="x"))) == ["to[0]"]


names = st.sampled_from([
    *("from", "to", "cc", "bcc", "recipientEmail", "replyTo", "subject", "text", "html", "payload", "headers", "kind"),
    *("inReplyTo", "references", "threadId", "attachments", "rawMessage", "campaignAction", "scheduledAt", "dryRun"),
    *("idempotencyKey", "dedupeKey", "fencingToken", "fencingTokens", "templateId", "tenantId", "humanize", "x"),
])  # fmt: skip
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from([PAT, "Pat <pat@example.net>", "2026-11-30T12:00:00Z", "aGk=", "<a@b>", "content", "filename"])
)  # fmt: skip
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from([PAT, "name", "value", "content", "filename"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.dictionaries(names, anything, max_size=6))
def test_whatever_is_asked_is_understood_or_refused(body: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    from gateway.doors.http.problems import dumped

    reader = Reader(KeyRules(), frozenset(), frozenset(), datetime.now(UTC))
    try:
        assert isinstance(shaped(dumped(body), SendRequest, reader), SendRequest)
    except Refusal as refusal:
        assert refusal.status in {400, 422}  # noqa: PT017 - either way out is right, a third is not
        dumped(refusal.extra)
