"""`demo` as a process: every outcome is right, nothing around it disturbs it, and `--keep` leaves it to be tried."""

import re
import shlex
import time

import httpx
import pytest

from gateway.cli.demo.board import Board
from gateway.cli.demo.story import Story
from gateway.settings import given
from tests.cli.conftest import Run
from tests.cli.processes import House

DISTURBANCE = {
    "GATEWAY_COOLDOWN_SECONDS": "0",
    "GATEWAY_SMARTHOST": "smtp://127.0.0.1:1",
    "GATEWAY_ROLES": "http",
    "GATEWAY_NO_SUCH_SETTING": "x",
    "GATEWAY_URL": "http://127.0.0.1:1",
    "GATEWAY_KEY": "gk_live_other",
    "GATEWAY_CONFIG": "missing.toml",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "ALL_PROXY": "http://127.0.0.1:1",
}


def test_every_outcome_is_right(house: House) -> None:
    began = time.monotonic()

    ended = house.run("demo")

    assert ended.code == 0, ended.out + ended.err
    assert time.monotonic() - began < 60  # 15 on a machine that is not shared
    table = ended.out.partition("Outcomes")[2]
    for words in (
        r"agents that got the lease\b.* 1 +\S 1 +\S ok",
        r"the loser's mail\b.* blocked: lease_conflict .*ok",
        r"the winner's mail\b.* relayed .*ok",
        r"a replay\b.* the first receipt .* the first receipt .*ok",
        r"a send with the old token\b.* blocked: stale_fencing_token .*ok",
        r"a second mail within the cooldown\b.* blocked: cooldown .*ok",
        r"to the suppressed address\b.* blocked: suppressed .*ok",
        r"the dry run's findings\b.* cooldown, stale_fencing_token, suppressed .*ok",
        r"the trace's status\b.* relayed .*ok",
        r"over SMTP, a newcomer\b.* 250 2\.0\.0 accepted as .*ok",
        r"over SMTP, the same mail again\b.* 250 2\.0\.0 already accepted as .*ok",
        r"over SMTP, too soon\b.* 450 4\.7\.1 cooldown .*ok",
        r"over SMTP, opted out\b.* 550 5\.7\.1 suppressed .*ok",
        r"mails in the sink at the end\b.* 2 +\S 2 +\S ok",
    ):
        assert re.search(words, table), words
    assert "WRONG" not in table
    assert ended.err == ""


def test_variables_a_profile_and_proxies_do_not_disturb_it(house: House) -> None:
    house.profile.parent.mkdir()
    house.profile.write_text("not toml")

    ended = house.run("demo", env=DISTURBANCE)

    assert ended.code == 0, ended.out + ended.err
    assert [path.name for path in house.folder.iterdir()] == ["config"]
    assert house.profile.read_text() == "not toml"


def test_a_terminal_that_knows_only_ascii_is_good_enough(house: House) -> None:
    ended = house.run("demo", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})

    assert ended.code == 0, ended.out + ended.err
    assert ended.out.isascii()


def curl(line: str) -> httpx.Response:
    """Does what the curl line says; curl itself may not be there."""
    words = iter(shlex.split(line)[1:])
    headers, data, url = {}, "", ""
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = next(words)
        elif word != "-s":
            url = word
    return httpx.post(url, content=data, headers=headers, trust_env=False, timeout=30)


def test_kept_it_stays_and_its_curl_lines_work(house: House) -> None:
    with house.stay("demo", "--keep") as demo:
        answers = []
        for words in ("# accepted:", "# refused:"):
            demo.line(re.escape(words))
            answers.append(curl(demo.line("^curl ").string).json())
        command = shlex.split(demo.line("^GATEWAY_URL=").string)
        variables = dict(word.split("=", 1) for word in command if "=" in word)
        leases = house.run("agents", "leases", env=variables)

        assert demo.stop() == 0

    assert answers[0]["status"] in {"queued", "relaying", "relayed"}
    assert answers[1]["reason"] == "suppressed"
    assert leases.code == 0
    assert "customer@example.net" in leases.out.lower()


def test_an_outcome_that_is_wrong_ends_it_with_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.demo.stage.given", lambda values: given({**values, "cooldown_seconds": 0}))

    result = run("demo")

    assert result.exit_code == 1
    assert re.search(r"a second mail within the cooldown\b.* WRONG", result.stdout)
    assert re.search(r"mails in the sink at the end\b.* 2 +\S 4 +\S WRONG", result.stdout)


def test_a_story_that_breaks_off_ends_it_with_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Story) -> None:
        raise RuntimeError("no way on")

    monkeypatch.setattr(Story, "_trace", broken)

    result = run("demo")

    assert result.exit_code == 1
    assert re.search(r"the story comes to its end\b.* no: RuntimeError no way on .*WRONG", result.stdout)


def test_without_an_outcome_nothing_was_right() -> None:
    assert Board().verdict() is False
