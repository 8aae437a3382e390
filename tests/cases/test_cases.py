"""Every case of the index is played on both kinds of database, or stands in a table that says why not."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import letters, upstream
from tests.cases.book import HOME, KINDS, Case, files, index
from tests.cases.more import MORE
from tests.cases.neighbours import NEIGHBOURS
from tests.cases.run import left_out, run
from tests.cases.tables import DIFFERS, LEFT_OUT, LEFT_OUT_KINDS, expected
from tests.cases.verdict import unknown_words
from tests.databases import Databases, SqliteFiles

CASES = {case.id: case for case in index()}
PLAYED = [case.id for case in CASES.values() if left_out(case) is None]
SECONDS = 2.0
"""How long a case goes on that only goes on for a while; a minute with `--slow`."""
DEAR = {"B11", "B57", "B62", "B89", "B112"}
"""Played on PostgreSQL with `--slow` alone: many processes, or many rounds."""
DOCS = HOME.parents[1] / "docs" / "semantics.md"


@pytest.mark.parametrize("case", PLAYED)
async def test_the_fault_of_a_case_is_gone(databases: Databases, case: str, request: pytest.FixtureRequest) -> None:
    slow = request.config.getoption("--slow")
    if case in DEAR and not isinstance(databases, SqliteFiles) and not slow:
        pytest.skip("dear on PostgreSQL: runs with --slow")
    seconds = 60.0 if slow else SECONDS

    result = await run(CASES[case], databases, seconds=seconds)

    assert list(result.faults) == [], CASES[case].fault


def test_every_file_has_an_entry_and_every_entry_a_file() -> None:
    assert sorted(case.file for case in CASES.values()) == sorted(files())
    assert len(CASES) == len(index())


def test_every_case_is_of_a_known_kind() -> None:
    assert {case.kind for case in CASES.values()} <= set(KINDS)


def test_only_cases_that_are_there_are_left_out_or_differ() -> None:
    assert set(LEFT_OUT) | set(DIFFERS) | set(MORE) | set(NEIGHBOURS) <= set(CASES)
    assert set(DIFFERS) | set(MORE) | set(NEIGHBOURS) <= set(PLAYED)
    assert set(LEFT_OUT_KINDS).isdisjoint(CASES[case].kind for case in PLAYED)


def test_what_differs_quotes_a_heading_of_our_pages() -> None:
    headings = re.findall(r"^## (.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)

    assert {one.heading for one in DIFFERS.values()} <= set(headings)


@pytest.mark.parametrize("case", PLAYED)
def test_every_word_of_an_expectation_is_judged(case: str) -> None:
    assert unknown_words(expected(case, CASES[case].expected)) == []


WRONG: dict[str, dict[str, Any]] = {
    "B01": {"gateway_messages": 2},
    "B04": {"received_text_lines": ["line one", ".", "line two"]},
    "B14": {"smtp_each_rcpt": "2.."},
    "B18": {"smtp_last": "535"},
    "B21": {"smtp_last": "250"},
    "B22": {"upstream_transactions": 1, "or": {"smtp_last": "2.."}},
    "B27": {"upstream_rcpts": ["pat@example.com"]},
    "B28": {"suppression_added": []},
    "B33": {"reason_in_response": "cooldown"},
    "B34": {"upstream_transactions": 1},
    "B36": {"http_status_by_step": [[200], "blocked", "blocked", "accepted"]},
    "B38": {"decision_by_step": [None, "accepted"]},
    "B42": {"states": {"j\u00f6rg@example.com": ["deferred"]}},
    "B45": {"received_text_lines": ["another"]},
    "B47": {"wire": {"max_line": 60}},
    "B53": {"wire": {"message_id_domain": "other.example.com"}},
    "B55": {"upstream_data_phases": 2},
    "B69": {"distinct_message_ids": 2},
    "B75": {"submit_times": 2, "upstream_transactions": 2},
    "B78": {"decisions": {"b78": "accepted"}},
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_fault_would_be_seen(sqlite_files: SqliteFiles, case: str) -> None:
    wrong: Case = dataclasses.replace(CASES[case], expected=WRONG[case])

    result = await run(wrong, sqlite_files)

    assert not result.passed


async def test_a_reply_that_a_step_does_not_expect_is_seen(sqlite_files: SqliteFiles) -> None:
    wrong = dataclasses.replace(CASES["B65"])
    steps = [{"op": "smtp_submit", "eml_of": "B24", "expect": "550"}]
    wrong.__dict__["script"] = wrong.script | {"steps": steps}

    result = await run(wrong, sqlite_files)

    assert ["250 2.0.0 accepted" in fault for fault in result.faults] == [True]


async def test_a_mail_that_the_driver_cannot_write_is_no_success(sqlite_files: SqliteFiles) -> None:
    odd = dataclasses.replace(CASES["B65"])
    steps = [{"op": "smtp_submit", "json": {"to": ["pat@example.com"], "text": "hi", "moon": "full"}}]
    odd.__dict__["script"] = odd.script | {"steps": steps}

    with pytest.raises(ValueError, match="'moon' is not known"):
        await run(odd, sqlite_files)


def test_a_mail_is_made_longer_by_as_much_as_is_asked() -> None:
    letter = letters.of_case(CASES["B24"])

    for octets in (0, 2, 64, 65, 924):
        assert len(letter.longer(octets).raw) - len(letter.raw) in {octets, octets + 1}
        assert letter.longer(octets).raw.endswith(b"\r\n")


async def test_a_word_that_the_driver_does_not_know_is_no_success(sqlite_files: SqliteFiles) -> None:
    odd = dataclasses.replace(CASES["B04"], expected={"moon": "full"})

    with pytest.raises(ValueError, match="'moon' of B04 is not known"):
        await run(odd, sqlite_files)


@pytest.mark.parametrize("line", ["DOT PERHAPS", "KNOCK 2", "ACCEPT TCP"])
def test_a_line_of_a_smarthost_that_nobody_can_play_is_refused(line: str, tmp_path: Path) -> None:
    head = 'trigger: {"json": {"to": ["pat@example.com"]}}\n---\n'
    story = upstream.read(head + line + "\n")

    with pytest.raises(ValueError, match=r"nothing that can be done|not known to the driver"):
        _ = upstream.checked(story.script(story.variants[0]))
