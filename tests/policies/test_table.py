"""The table: its rows, what settings may say of them, and which reasons they can give."""

from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import policies
from gateway.core.judge import Rule
from gateway.core.mail import Kind, Moment
from gateway.core.verdict import CORE_REASONS, DEFER, HOLD, PASS, REFUSE, Mode
from policies import LARGEST, TABLE, Row, reasons, rules
from policies.cooldown import Cooldown
from policies.recipient import Recipients
from tests.builders import a_mail

ROWS = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)


def the_rule(name: str, options: dict[str, Any] | None = None) -> Rule:
    (rule,) = (rule for rule in rules({name: options or {}}) if rule.name == name)
    return rule


# --- rows -------------------------------------------------------------------------------------------------------------


def test_the_table_reads_in_the_order_of_the_page() -> None:
    page = ["recipient", "identity", "lease", "suppression", "cooldown", "outstanding", "quota", "content"]

    assert [row.name for row in TABLE if row.name in page] == page  # others may stand between them


def test_every_policy_in_the_folder_has_a_row() -> None:
    files = {path.stem for path in Path(policies.__file__).parent.glob("*.py")} - {"__init__"}

    assert files == {row.name for row in TABLE}


def test_recipient_identity_and_suppression_are_always_enforced() -> None:
    assert {row.name for row in TABLE if row.always} == {"recipient", "identity", "suppression"}


def test_only_lease_and_cooldown_give_way_to_an_operators_word() -> None:
    mail = a_mail(override="the customer is on the phone")

    assert {rule.name for rule in rules() if rule.concerns(a_mail()) and not rule.concerns(mail)} == {
        "lease",
        "cooldown",
    }


@ROWS
def test_a_policy_is_a_frozen_dataclass_that_says_when_it_is_asked(row: Row) -> None:
    policy = row.kind()

    assert is_dataclass(row.kind)
    assert policy.when
    assert policy.when <= frozenset(Moment)
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        policy.something = 1
    for field in fields(policy):
        with pytest.raises(FrozenInstanceError):
            setattr(policy, field.name, 1)


@ROWS
def test_a_policy_is_explained_by_its_file(row: Row) -> None:
    assert row.module.__doc__
    assert row.kind.__doc__


def test_quota_and_content_are_asked_at_acceptance_only() -> None:
    at_release = {rule.name for rule in rules() if rule.concerns(a_mail(moment=Moment.RELEASE))}

    assert at_release >= {"recipient", "identity", "lease", "suppression", "cooldown", "outstanding"}
    assert at_release.isdisjoint({"quota", "content"})


# --- settings ---------------------------------------------------------------------------------------------------------


def test_without_settings_every_policy_but_consent_is_enforced_for_all_mail() -> None:
    table = rules()

    assert [rule.name for rule in table] == [row.name for row in TABLE]
    assert {rule.name for rule in table if rule.mode is not Mode.ENFORCE} == {"consent"}
    assert {rule.applies_to for rule in table} == {frozenset()}


def test_without_settings_the_limits_are_those_of_the_page() -> None:
    made: dict[str, Any] = {rule.name: rule.policy for rule in rules()}

    assert made["recipient"].max_recipients == 100
    assert made["lease"].flight_max == 3600
    assert made["cooldown"].seconds == 600
    assert made["content"].max_bytes == 10_485_760
    assert {getattr(made["quota"], field.name) for field in fields(made["quota"])} == {0}


def test_settings_give_mode_options_and_scope() -> None:
    rule = the_rule("cooldown", {"mode": "observe", "seconds": 60, "applies_to": ["outreach", "mailbox-1"]})

    assert rule.policy == Cooldown(seconds=60)
    assert rule.mode is Mode.OBSERVE
    assert rule.applies_to == {"outreach", "mailbox-1"}


def test_a_setting_of_the_policy_outweighs_the_general_one() -> None:
    table = rules({"cooldown": {"seconds": 60}}, {"cooldown": {"seconds": 5}, "recipient": {"max_recipients": 7}})

    made = {rule.name: rule.policy for rule in table}
    assert made["cooldown"] == Cooldown(seconds=60)
    assert made["recipient"] == Recipients(max_recipients=7)


@pytest.mark.parametrize("value", [0, LARGEST])
def test_the_smallest_and_the_largest_number_are_taken(value: int) -> None:
    assert the_rule("cooldown", {"seconds": value}).policy == Cooldown(seconds=value)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"cooldwn": {}}, r"policies\.cooldwn: there is no such policy, only recipient, identity, "),
        ({"cooldown": {"second": 1}}, r"policies\.cooldown\.second: .* only mode, applies_to, seconds"),
        ({"cooldown": {"when": 1}}, r"policies\.cooldown\.when: there is no such option"),
        ({"cooldown": {"seconds": "60"}}, r"policies\.cooldown\.seconds: must be a whole number, not '60'"),
        ({"cooldown": {"seconds": 60.0}}, r"policies\.cooldown\.seconds: must be a whole number, not 60\.0"),
        ({"cooldown": {"seconds": True}}, r"policies\.cooldown\.seconds: must be a whole number, not True"),
        ({"cooldown": {"seconds": -1}}, r"policies\.cooldown\.seconds: must be from 0 to 2147483647, not -1"),
        ({"cooldown": {"seconds": 2**31}}, r"policies\.cooldown\.seconds: must be from 0 to"),
        ({"recipient": {"max_recipients": 0}}, r"policies\.recipient: max_recipients must be at least 1"),
        ({"cooldown": {"mode": "warn"}}, r"policies\.cooldown\.mode: must be one of enforce, observe, off, not 'warn'"),
        ({"cooldown": {"mode": False}}, r"policies\.cooldown\.mode: must be one of"),
        ({"cooldown": {"applies_to": "outreach"}}, r"policies\.cooldown\.applies_to: must be a list"),
        ({"cooldown": {"applies_to": ["outreach", 1]}}, r"policies\.cooldown\.applies_to: must be a list"),
        ({"cooldown": {"applies_to": [""]}}, r"policies\.cooldown\.applies_to: must be a list"),
        ({"cooldown": {"applies_to": ["Outreech"]}}, r"policies\.cooldown\.applies_to: .* is 'outreach' meant\?"),
        ({"recipient": {"mode": "observe"}}, r"policies\.recipient: it is always enforced, for all mail"),
        ({"identity": {"mode": "off"}}, r"policies\.identity: it is always enforced"),
        ({"suppression": {"mode": "observe"}}, r"policies\.suppression: it is always enforced"),
        ({"suppression": {"applies_to": ["outreach"]}}, r"policies\.suppression: it is always enforced"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line_that_names_it(options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line) as raised:
        rules(options)

    assert "\n" not in str(raised.value)


def test_a_wrong_default_is_named_too() -> None:
    with pytest.raises(ValueError, match=r"policies\.nothing: there is no such policy"):
        rules(defaults={"nothing": {}})


def test_a_policy_that_is_always_enforced_may_be_told_so() -> None:
    assert the_rule("suppression", {"mode": "enforce", "applies_to": []}).mode is Mode.ENFORCE


@pytest.mark.parametrize(
    ("kind", "good", "bad", "words"),
    [
        (bool, True, 1, "true or false"),
        (str, "monday", 1, "a text"),
        (tuple[str, ...], ["monday"], "monday", "a list of texts"),
    ],
)
def test_other_types_of_options_are_checked_as_well(kind: object, good: object, bad: object, words: str) -> None:
    expected = tuple(good) if isinstance(good, list) else good

    assert policies._checked("there", good, kind) == expected
    with pytest.raises(ValueError, match=f"there: must be {words}"):
        policies._checked("there", bad, kind)


# --- reasons ----------------------------------------------------------------------------------------------------------

PAGE = {
    # slug: reply, enhanced status code, strict HTTP status, next action (SEMANTICS 4)
    "recipient_not_allowed": (550, "5.1.3", 422, "fix"),
    "sender_not_allowed": (550, "5.7.1", 403, "use your own mailbox"),
    "mailbox_not_active": (550, "5.7.1", 403, "use your own mailbox"),
    "mailbox_paused": (550, "5.7.1", 403, "use your own mailbox"),
    "stale_fencing_token": (550, "5.7.1", 409, "discard the draft; never resend with the old token"),
    "lease_expired": (550, "5.7.1", 409, "acquire again, then check again"),
    "lease_required": (550, "5.7.1", 409, "acquire a lease"),
    "lease_conflict": (450, "4.7.1", 409, "stop; wait for release or hand off"),
    "suppressed": (550, "5.7.1", 403, "stop; it binds every agent"),
    "no_consent": (550, "5.7.1", 403, "stop"),
    "consensus_pending": (250, "2.0.0", 202, "wait for the votes; do not resend"),
    "consensus_rejected": (550, "5.7.1", 403, "stop; the agents decided against it"),
    "consensus_required": (
        550,
        "5.7.1",
        409,
        "create a consensus request for this contact, then send again with requireConsensusId",
    ),
    "cooldown": (450, "4.7.1", 429, "schedule after retryAt or drop"),
    "unknown_outstanding": (250, "2.0.0", 202, "a person decides; do not resend"),
    "hourly_limit_exceeded": (450, "4.7.1", 429, "wait until retryAt"),
    "daily_limit_exceeded": (450, "4.7.1", 429, "wait until retryAt"),
    "monthly_limit_exceeded": (450, "4.7.1", 429, "wait until retryAt"),
    "message_too_large": (552, "5.3.4", 413, "make it smaller"),
    "invalid_message": (554, "5.6.0", 422, "fix"),
    "policy_error": (451, "4.3.0", 503, "try again later"),
    "store_unavailable": (451, "4.3.0", 503, "try again later"),
    "idempotency_key_reused": (554, "5.5.4", 422, "ask for that request first; use a new key only for a new message"),
}


def test_the_reasons_of_the_page_are_as_it_says() -> None:
    given = {reason.slug: (reason.code, reason.enhanced, reason.strict, reason.next) for reason in reasons()}

    assert {slug: given[slug] for slug in PAGE} == PAGE


def test_a_reason_is_given_by_one_policy_alone() -> None:
    slugs = [reason.slug for reason in reasons()]

    assert len(slugs) == len(set(slugs))
    assert reasons()[-len(CORE_REASONS) :] == CORE_REASONS


def test_every_reason_stands_in_the_way_and_says_so_in_dull_words() -> None:
    for reason in reasons():
        assert reason.verdict in {HOLD, DEFER, REFUSE}
        assert reason.verdict is not PASS
        assert reason.text.isascii()
        assert not reason.text[0].isupper()
        assert not reason.text.endswith(".")


def test_kinds_and_mailboxes_may_both_be_named() -> None:
    rule = the_rule("cooldown", {"applies_to": ["reply", "mailbox-1"]})

    assert rule.concerns(a_mail())
    assert rule.concerns(a_mail(kind=Kind.REPLY, mailbox="mailbox-2"))
    assert not rule.concerns(a_mail(mailbox="mailbox-2"))
