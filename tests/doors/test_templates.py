"""Stored templates: versions that never change, one of them published, filled in for a send as if it had been said inline."""

from typing import Any

import pytest

from gateway.store import agents, keys
from gateway.store.keys import NewKey
from tests.doors.door import SIMULATE, Door, a_send, faults, problem
from tests.world import BOXES

TEMPLATES = "/v1/templates"
WELCOME = {
    "subjectTemplate": "Hello {{ first_name }}",
    "textTemplate": "Hi {{ first_name }},\nwelcome to {{ company.name }}.\n",
    "htmlTemplate": "<p>Hi {{ first_name }},</p>\n<p>welcome to {{ company.name }}.</p>\n",
}
PAYLOAD = {"first_name": "Pat & Co", "company": {"name": "<Example>"}}


async def made(door: Door, slug: str = "welcome", **version: Any) -> dict[str, Any]:
    """A template with one version, published."""
    answer = await door.post(TEMPLATES, {"slug": slug, "name": "Welcome"}, by="operator")
    assert answer.status_code == 200, answer.text
    await added(door, slug, **version)
    published = await door.post(f"{TEMPLATES}/{slug}/publish", by="operator")
    assert published.status_code == 200, published.text
    told: dict[str, Any] = published.json()
    return told


async def added(door: Door, slug: str = "welcome", **version: Any) -> dict[str, Any]:
    answer = await door.post(f"{TEMPLATES}/{slug}/versions", version or WELCOME, by="operator")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def by_template(**changes: Any) -> dict[str, Any]:
    return {"subject": ..., "text": ..., "templateId": "welcome", "payload": PAYLOAD} | changes


async def test_a_send_by_template_is_the_same_as_its_text_inline(door: Door) -> None:
    template = await made(door)

    sent = await door.accepted(**by_template())
    inline = await door.send(
        subject="Hello Pat & Co",
        text="Hi Pat & Co,\nwelcome to <Example>.\n",
        html="<p>Hi Pat &amp; Co,</p>\n<p>welcome to &lt;Example&gt;.</p>\n",
    )

    assert (inline.json()["requestId"], inline.json()["replayed"]) == (sent["requestId"], True)
    assert b"Subject: Hello Pat & Co\r\n" in door.message(sent["requestId"])
    told = (await door.get(f"/v1/agent/requests/{sent['requestId']}")).json()
    assert (told["templateId"], told["templateVersion"]) == (template["id"], 1)
    traced = (await door.get(f"/v1/ops/trace/{sent['requestId']}")).json()["request"]
    assert (traced["templateId"], traced["templateVersion"]) == (template["id"], 1)


async def test_a_template_is_known_by_its_id_too(door: Door) -> None:
    template = await made(door)

    assert (await door.send(**by_template(templateId=template["id"]))).json()["status"] == "queued"


async def test_a_dry_run_fills_in_too_and_says_what_a_send_would(door: Door) -> None:
    await made(door)

    told = (await door.post(SIMULATE, a_send(**by_template()))).json()
    refused = await door.post(SIMULATE, a_send(**by_template(payload={})))

    assert told["wouldAllow"] is True
    problem(refused, 422, "template_render_failed")


async def test_an_older_version_never_changes_and_sends_use_the_published_one(door: Door) -> None:
    await made(door)
    second = await added(door, textTemplate="two")
    first = (await door.get(f"{TEMPLATES}/welcome/versions/1")).json()

    before = (await door.post(f"{TEMPLATES}/welcome/render", {"payload": PAYLOAD})).json()
    await door.post(f"{TEMPLATES}/welcome/publish", {"version": 2, "requestedBy": "marketing"}, by="operator")
    after = (await door.post(f"{TEMPLATES}/welcome/render", {"payload": {}})).json()
    await door.post(f"{TEMPLATES}/welcome/publish", {"version": 1}, by="operator")
    back = (await door.get(f"{TEMPLATES}/welcome")).json()

    assert {name: first[name] for name in WELCOME} == WELCOME
    assert (second["version"], second["subjectTemplate"]) == (2, None)
    assert (before["version"], before["subject"]) == (1, "Hello Pat & Co")
    assert (after["version"], after["text"], after["html"]) == (2, "two", None)
    assert (back["publishedVersion"], back["latestVersion"]) == (1, 2)
    assert (back["published"]["version"], back["latest"]["version"]) == (1, 2)


async def test_the_same_key_with_a_new_version_is_another_content(door: Door) -> None:
    await made(door)
    await door.accepted(**by_template())
    await added(door, textTemplate="two")
    await door.post(f"{TEMPLATES}/welcome/publish", by="operator")

    problem(await door.send(**by_template()), 422, "idempotency_key_reused")


async def test_a_template_that_is_not_there_or_not_published_is_told_so(door: Door) -> None:
    await door.post(TEMPLATES, {"slug": "draft", "name": "Draft"}, by="operator")
    await added(door, "draft")

    problem(await door.send(templateId="nowhere"), 404, "template_not_found")
    problem(await door.send(**by_template(templateId="nowhere")), 404, "template_not_found")
    problem(await door.send(**by_template(templateId="draft")), 409, "template_not_published")
    assert (await door.send(templateId="_inline")).json()["status"] == "queued"


async def test_what_a_template_says_is_not_said_beside_it(door: Door) -> None:
    await made(door)

    assert faults(await door.send(**by_template(subject="x", html="y", payload=...))) == ["subject", "html"]


async def test_variables_may_be_called_like_parts_of_a_mail(door: Door) -> None:
    await made(door, textTemplate="{{ subject }}/{{ text }}")

    sent = await door.accepted(**by_template(payload={"subject": "one", "text": "two"}))

    assert b"\r\none/two" in door.message(sent["requestId"])


async def test_a_payload_without_a_stored_template_has_its_three_members_alone(wire: Door) -> None:
    wish = by_template(templateId="_x", payload={"text": "hi", "first_name": "x", "a b": 1})

    assert faults(await wire.send(**wish)) == ["payload.first_name", "payload"]


async def test_what_cannot_be_filled_in_is_named_by_template_version_line_and_variable(door: Door) -> None:
    template = await made(door)

    body = problem(
        await door.send(**by_template(payload={"first_name": "x", "company": {}})), 422, "template_render_failed"
    )

    said = {name: body[name] for name in ("templateId", "template", "version", "part", "line", "variable")}
    assert said == {
        "templateId": template["id"],
        "template": "welcome",
        "version": 1,
        "part": "text",
        "line": 2,
        "variable": "name",
    }
    assert door.world.rows()["sends"] == []


@pytest.mark.parametrize("value", ["two\nlines", "two\r\nBcc: eve@example.org", "a\x00", "a\u2028b"])
async def test_a_value_brings_no_line_end_into_the_subject(door: Door, value: str) -> None:
    await made(door)

    answer = await door.send(**by_template(payload=PAYLOAD | {"first_name": value}))

    assert answer.status_code == 422
    assert answer.json()["error"] in {"template_render_failed", "invalid_request"}
    assert door.world.rows()["sends"] == []


async def test_a_value_makes_a_subject_no_longer_than_one_may_be(wire: Door) -> None:
    await made(wire)

    answer = await wire.send(**by_template(payload=PAYLOAD | {"first_name": "x" * 10_001}))

    assert problem(answer, 422, "template_render_failed")["part"] == "subject"


async def test_a_value_is_never_taken_for_a_template(door: Door) -> None:
    await made(door)

    sent = await door.accepted(**by_template(payload=PAYLOAD | {"first_name": "{{ 7 * 7 }}{% if %}"}))

    assert b"{{ 7 * 7 }}" in door.message(sent["requestId"])


async def test_declared_variables_are_asked_for_by_name_and_type(door: Door) -> None:
    declared = [
        {"name": "first_name", "type": "string"},
        {"name": "count", "type": "number"},
        {"name": "note", "required": False, "description": "A word more."},
    ]
    await made(
        door, textTemplate="{{ first_name }} {{ count }}{% if note %} {{ note }}{% endif %}.", variables=declared
    )

    missing = await door.send(**by_template(payload={"count": True}))
    sent = await door.accepted(**by_template(payload={"first_name": "Pat", "count": 2}))

    assert faults(missing) == ["payload.first_name", "payload.count"]
    assert b"\r\nPat 2." in door.message(sent["requestId"])


async def test_lint_names_what_is_not_declared_and_it_cannot_be_published(door: Door) -> None:
    await door.post(TEMPLATES, {"slug": "odd", "name": "Odd"}, by="operator")
    made = await added(
        door,
        "odd",
        htmlTemplate="<p>\n{{ who }} <a href='http://example.com'>x</a>",
        variables=[{"name": "spare"}],
    )

    told = (await door.post(f"{TEMPLATES}/odd/lint")).json()

    assert told["ok"] is False
    (error,) = told["errors"]
    assert (error["rule"], error["variable"], error["part"], error["line"]) == ("undeclared_variable", "who", "html", 2)
    rules = {one["rule"] for one in told["warnings"]}
    assert rules == {"unused_variable", "missing_subject", "missing_text", "insecure_url"}
    assert made["lint"] == [*told["errors"], *told["warnings"]]
    problem(await door.post(f"{TEMPLATES}/odd/publish", by="operator"), 422, "template_lint_failed")


async def test_lint_says_nothing_of_a_good_version(door: Door) -> None:
    await made(door)

    told = (await door.post(f"{TEMPLATES}/welcome/lint", {"version": 1})).json()

    assert (told["ok"], told["errors"], told["warnings"]) == (True, [], [])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"textTemplate": ...}, ["textTemplate"]),
        ({"textTemplate": "a\n{{"}, ["textTemplate"]),
        ({"htmlTemplate": "{% include 'x' %}"}, ["htmlTemplate"]),
        ({"subjectTemplate": "a\nb"}, ["subjectTemplate"]),
        ({"subjectTemplate": "{{ x() }}"}, ["subjectTemplate"]),
        ({"textTemplate": "x" * 131_073}, ["textTemplate"]),
        ({"variables": [{"name": "_x"}]}, ["variables[0].name"]),
        ({"variables": [{"name": "x"}, {"name": "x"}]}, ["variables[1].name"]),
        ({"variables": [{"name": "x", "type": "date"}]}, ["variables[0].type"]),
        ({"bogus": 1}, ["bogus"]),
    ],
)
async def test_a_malformed_version_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    await wire.post(TEMPLATES, {"slug": "x", "name": "X"}, by="operator")
    wish = {name: value for name, value in ({"textTemplate": "hi"} | changes).items() if value is not ...}

    answer = await wire.post(f"{TEMPLATES}/x/versions", wish, by="operator")

    assert faults(answer) == named
    assert wire.world.rows()["template_versions"] == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"slug": "_x"}, ["slug"]),
        ({"slug": "tpl_x"}, ["slug"]),
        ({"slug": "A b"}, ["slug"]),
        ({"slug": "x" * 65}, ["slug"]),
        ({"name": None}, ["name"]),
        ({"type": "spam"}, ["type"]),
        ({"approvalRequired": True}, ["approvalRequired"]),
    ],
)
async def test_a_malformed_template_is_refused_by_name(wire: Door, changes: dict[str, Any], named: list[str]) -> None:
    assert faults(await wire.post(TEMPLATES, {"slug": "x", "name": "X"} | changes, by="operator")) == named


async def test_a_slug_is_taken_once(door: Door) -> None:
    first = (await door.post(TEMPLATES, {"slug": "x", "name": "X", "approvalRequired": False}, by="operator")).json()

    again = problem(await door.post(TEMPLATES, {"slug": "x", "name": "Y"}, by="operator"), 409, "template_exists")

    assert again["id"] == first["id"]
    assert (first["status"], first["type"], first["publishedVersion"]) == ("draft", "marketing", None)


async def test_templates_are_listed_in_pages_by_slug(door: Door) -> None:
    for slug in ("c", "a", "b"):
        await door.post(TEMPLATES, {"slug": slug, "name": slug}, by="operator")

    first = (await door.get(TEMPLATES, params={"limit": "2"})).json()
    rest = (await door.get(TEMPLATES, params={"limit": "2", "after": "b"})).json()

    assert [one["slug"] for one in [*first, *rest]] == ["a", "b", "c"]


async def test_who_may_not_change_templates_reads_them_all_the_same(door: Door) -> None:
    await made(door)
    door.add_key("local", scopes=("manage",), mailboxes=(door.world.box[BOXES[1]].id,))

    problem(await door.post(TEMPLATES, {"slug": "y", "name": "Y"}), 403, "insufficient_scope")
    for path, body in (("", {"slug": "y", "name": "Y"}), ("/welcome/versions", WELCOME), ("/welcome/publish", {})):
        problem(await door.post(TEMPLATES + path, body, by="local"), 403, "mailbox_scope_denied")
    assert (await door.get(f"{TEMPLATES}/welcome", by="local")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/welcome"),
        ("GET", "/welcome/versions/1"),
        ("POST", "/welcome/lint"),
        ("POST", "/welcome/render"),
        ("POST", "/welcome/publish"),
    ],
)
async def test_another_tenants_template_looks_as_if_it_were_not_there(wire: Door, method: str, path: str) -> None:
    await made(wire)
    store = wire.world.store
    store.write((), lambda tx: agents.add_tenant(tx, "other"))
    wish = NewKey("other", "x", ("read", "manage"))
    ((_, raw),) = store.write(("other",), lambda tx: keys.create_keys(tx, [wish]))

    problem(await wire.call(method, TEMPLATES + path, by=raw), 404, "template_not_found")


@pytest.mark.parametrize("version", ["0", "2", "x", "-1", "99999999999999999999"])
async def test_a_version_that_is_not_there_is_told_so(wire: Door, version: str) -> None:
    await made(wire)

    problem(await wire.get(f"{TEMPLATES}/welcome/versions/{version}"), 404, "template_version_not_found")
    problem(await wire.get(f"{TEMPLATES}/%00/versions/1"), 404, "template_not_found")


async def test_a_payload_has_an_end(wire: Door) -> None:
    await made(wire)

    assert faults(await wire.send(**by_template(payload=PAYLOAD | {"x": "y" * 262_144}))) == ["payload"]
