"""What the words of `expected` mean that are about answers, records, processes and bytes; `received` has the others."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from gateway.core.address import AddressError, parse
from gateway.store.dialect import Dialect
from gateway.store.schema import attempts
from tests.cases import wire, words
from tests.cases.play import Play
from tests.cases.said import rows_of_budget

Expectation = Callable[[Play, Any], Awaitable[None]]
EXPECTATIONS: dict[str, Expectation] = {}
CLASS = re.compile(r"[A-Z]\w*(Error|Exception)\b")
"""The name of an exception's class, as an answer must not hold it."""
COMMAND = re.compile(r"RCPT TO:\s*<([^>]*)>", re.IGNORECASE)


def expects(judge: Expectation) -> Expectation:
    """Enter a word."""
    EXPECTATIONS[judge.__name__] = judge
    return judge


def by_step(play: Play) -> dict[int, list[words.Said]]:
    """The answers of each step."""
    found: dict[int, list[words.Said]] = {}
    for one in play.said:
        found.setdefault(one.step, []).append(one)
    return found


def rcpts(play: Play) -> list[str]:
    """Everybody named in a RCPT command, whatever the reply."""
    return [found[1] for line in play.house.sink.commands if (found := COMMAND.match(line))]


def same_person(one: str, other: str) -> bool:
    """Whether two addresses are one person."""
    try:
        return parse(one).key == parse(other).key
    except AddressError:
        return one == other


# --- answers ----------------------------------------------------------------------------------------------------------


@expects
async def http_status(play: Play, allowed: list[int]) -> None:
    for one in play.sends or play.said:
        play.fault(one.status in allowed, f"step {one.step}: {one.status} is none of {allowed}: {one.text[:200]}")


@expects
async def http_status_by_step(play: Play, wanted: list[Any]) -> None:
    said = by_step(play)
    for number, allowed in enumerate(wanted):
        for one in said.get(number, []) if allowed is not None else []:
            fits = allowed in one.decisions if isinstance(allowed, str) else one.status in allowed
            play.fault(fits, f"step {number}: {one.status} {one.decisions}, not {allowed}: {one.text[:200]}")


@expects
async def decision_by_step(play: Play, wanted: list[str | None]) -> None:
    said = by_step(play)
    for number, word in enumerate(wanted):
        for one in said.get(number, []) if word is not None and word != "documented" else []:
            _decided(play, one, str(word))


@expects
async def decisions(play: Play, wanted: dict[str, str]) -> None:
    for key, word in wanted.items():
        found = [one for one in play.sends if one.key == key]
        play.fault(found, f"{key} was not asked")
        for one in found:
            _decided(play, one, word)


@expects
async def decision_of_send(play: Play, word: str) -> None:
    for one in play.sends:
        _decided(play, one, word)


def _decided(play: Play, one: words.Said, word: str) -> None:
    if word == "not_a_replay_of_agent_a":
        firsts = {str(other.body["requestId"]) for other in play.sends if other.agent == "agent-a" and other.accepted}
        play.fault(not any(first in one.text for first in firsts), f"step {one.step}: tells of another's: {one.text}")
        return
    fits = set(word.split("|")) & one.decisions
    play.fault(fits, f"step {one.step}: {sorted(one.decisions)}, not {word}: {one.text[:300]}")


@expects
async def accepted(play: Play, count: int) -> None:
    found = sum(one.accepted for one in play.sends)
    play.fault(found == count, f"{found} accepted, not {count}")
    for one in play.sends:
        if "quota" in one.decisions:
            told = one.body
            play.fault(
                told.get("resetsAt") and told.get("remaining") == 0, f"no resetsAt or remaining: {one.text[:200]}"
            )


@expects
async def distinct_message_ids(play: Play, count: int) -> None:
    found = {one.body.get("messageId") for one in play.sends if one.accepted}
    play.fault(len(found) == count, f"{len(found)} message ids, not {count}")


@expects
async def reason_in_response(play: Play, word: str) -> None:
    for one in play.sends:
        _decided(play, one, word)


@expects
async def response_has(play: Play, wanted: list[str]) -> None:
    for what in wanted:
        if what != "all findings":
            raise ValueError(f"{what!r} is not known to the driver")
        last = play.sends[-1]
        named = {finding.get("recipient") for finding in last.body["findings"]}
        for address in last.asked["to"] if last.asked else ():
            play.fault(address in named, f"step {last.step}: the findings do not name {address}")


@expects
async def must_not(play: Play, wanted: list[str]) -> None:
    for what in wanted:
        if found := re.fullmatch(r"HTTP (\d+)", what):
            play.fault(not any(one.status == int(found[1]) for one in play.said), what)
        elif what == "exception class names in replies":
            play.fault(not any(CLASS.search(one.text) for one in play.said), what)
        elif what == "200 cancelled and one mail upstream":
            await _cancels(play)
        else:
            play.fault(not any(what in one.text for one in play.said), f"an answer says {what!r}")


async def _cancels(play: Play) -> None:
    """The answer to each cancel is the truth: stopped and no mail, or not stopped and one."""
    stopped = dict(play.facts.get("cancels", ()))
    play.notes.append(f"{sum(map(bool, stopped.values()))} of {len(stopped)} were stopped in time")
    for one in play.sends:
        count = len(play.mails_of(one))
        if one.key in stopped:
            play.fault(
                count == (0 if stopped[one.key] else 1), f"{one.key}: cancelled {stopped[one.key]}, {count} mails"
            )


@expects
async def tokens_strictly_increasing(play: Play, _: object) -> None:
    tokens = list(play.tokens.values())
    play.fault(all(a < b for a, b in pairwise(tokens)), f"tokens: {tokens}")


@expects
async def rows_seen_once(play: Play, count: int) -> None:
    seen = play.facts.get("rows_seen", [])
    play.fault(len(seen) == len(set(seen)) == count, f"{len(seen)} rows, {len(set(seen))} different, not {count}")


@expects
async def shown_equals_enforced(play: Play, _: object) -> None:
    for one in play.said:
        for row in rows_of_budget(one.body):
            limit = row.get("limit")
            fits = limit is None or row["remaining"] == max(0, limit - row["used"])
            play.fault(fits, f"step {one.step}: {row}")


@expects
async def http_5xx(play: Play, count: int) -> None:
    found = Counter(one.status for one in play.said if one.status >= 500)
    play.fault(sum(found.values()) == count, f"answers of 5xx: {dict(found)}")


# --- records ----------------------------------------------------------------------------------------------------------


async def _state(play: Play, name: str) -> set[str]:
    """The states of a person's or a key's mails, as the API shows them."""
    found: set[str] = set()
    for one in {str(one.body["requestId"]): one for one in play.sends if _kept(one)}.values():
        if "@" not in name and one.key != name:
            continue
        record = await play.record(one.body["requestId"])
        told = record["recipients"]
        found |= {words.STATES[r["status"]] for r in told if "@" not in name or same_person(r["email"], name)}
    return found


def _kept(one: words.Said) -> bool:
    return one.status < 300 and isinstance(one.body, dict) and bool(one.body.get("requestId"))


@expects
async def states(play: Play, wanted: dict[str, list[str]]) -> None:
    for name, allowed in wanted.items():
        found = await _state(play, name)
        play.fault(found and found <= set(allowed), f"{name} is {sorted(found)}, not {allowed}")


@expects
async def states_allowed(play: Play, wanted: dict[str, list[str]]) -> None:
    await states(play, wanted)


@expects
async def suppression_added(play: Play, wanted: list[str]) -> None:
    found = await play.suppressed() - play.facts["suppressed"]
    play.fault(found == set(wanted), f"suppressed: {sorted(found)}, not {wanted}")


@expects
async def accepted_equals_stored(play: Play, _: object) -> None:
    missing = []
    for request in {one.body["requestId"] for one in play.sends if one.accepted}:
        answer = await play.house.call("GET", f"/v1/agent/requests/{request}", "operator")
        if answer.status_code != 200:
            missing.append(request)
    play.fault(not missing, f"not in the store: {missing[:5]}")


def tries(play: Play) -> list[float]:
    """When each attempt began, in seconds of the store's clock."""
    rows = play.house.store.read(lambda tx: tx.rows(_tries, {}))
    return sorted(row["started_us"] / 1_000_000 for row in rows)


def _tries(_: Dialect) -> sa.Executable:
    return sa.select(attempts.c.started_us)


@expects
async def attempts_max(play: Play, most: int) -> None:
    times = tries(play)
    gaps = [round(b - a) for a, b in pairwise(times)]
    play.notes.append(f"{len(times)} attempts, gaps {gaps} s")
    play.fault(len(times) <= most, f"{len(times)} attempts")


@expects
async def first_retry_gap_s_min(play: Play, least: float) -> None:
    times = tries(play)
    play.fault(len(times) > 1 and times[1] - times[0] >= least, f"attempts at {times[:2]}")


@expects
async def first_attempt_max_s(play: Play, most: float) -> None:
    from gateway.settings import Settings

    usual = Settings(hostname="gw.example.com").connect_timeout_seconds
    play.fault(usual <= most and play.facts["first"] <= most, f"{usual} s by default, {play.facts['first']} s here")


# --- processes --------------------------------------------------------------------------------------------------------


@expects
async def process_exit(play: Play, wanted: list[str]) -> None:
    found = play.facts.get("exits", [])
    play.fault(found == wanted, f"{found}, not {wanted}")


@expects
async def stderr_one_line(play: Play, _: object) -> None:
    for lines in play.facts.get("printed", []):
        play.fault(len(lines) <= 1, f"printed {lines}")


# --- the wire ---------------------------------------------------------------------------------------------------------


@expects
async def wire_(play: Play, wanted: dict[str, Any]) -> None:
    play.faults += wire.faults(play.mails, wanted)


EXPECTATIONS["wire"] = EXPECTATIONS.pop("wire_")
