"""What a step expects in words: each kind of sentence once, with what must then be true of the answer."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.cases import words
from tests.cases.play import Play
from tests.cases.tables import DIFFERS
from tests.cases.words import Said

Check = Callable[[Play, Said, "re.Match[str]"], object]


def _reason(body: Any) -> str:  # noqa: ANN401  (JSON)
    reason = str(body.get("reason") or body.get("error")) if isinstance(body, dict) else ""
    return words.DECISIONS.get(reason, reason)


def _holder(_: Play, said: Said, __: object) -> object:
    holder = said.body.get("leaseHolder", {})
    return said.body.get("conflict") is True and holder.get("agentName") and holder.get("expiresAt")


def _higher(play: Play, said: Said, found: "re.Match[str]") -> object:
    return said.body.get("fencingToken", -1) > play.tokens[found[1]]


def _one_row(_: Play, said: Said, found: "re.Match[str]") -> object:
    return [row["agentName"] for row in said.body] == [found[1]]


def _refused(_: Play, said: Said, found: "re.Match[str]") -> object:
    done = any(said.body.get(name) for name in ("renewed", "released"))
    return _reason(said.body) == found[1] and not done


def _cancelled(_: Play, said: Said, __: object) -> object:
    return said.status == 200 and said.body.get("cancelled") is True


def _done(_: Play, said: Said, __: object) -> object:
    return said.status == 200 and any(said.body.get(name) for name in ("renewed", "released", "fencingToken"))


def _budget(_: Play, said: Said, found: "re.Match[str]") -> object:
    used, remaining, resets = int(found[1]), int(found[2]), found[3]
    return any(
        (row.get("used"), row.get("remaining"), row.get("resetsAt")) == (used, remaining, resets)
        for row in rows_of_budget(said.body)
    )


def rows_of_budget(body: Any) -> list[dict[str, Any]]:  # noqa: ANN401  (JSON)
    """All rows of an answer that tell how much of something is used."""
    if isinstance(body, dict):
        own = [body] if {"used", "remaining"} <= set(body) else []
        return own + [row for value in body.values() for row in rows_of_budget(value)]
    return [row for value in body for row in rows_of_budget(value)] if isinstance(body, list) else []


def _no_foreign(play: Play, said: Said, found: "re.Match[str]") -> object:
    own = {one.body["requestId"] for one in play.sends if one.accepted and one.agent == found[1]}
    return said.status < 500 and not any(request in said.text for request in own)


SENTENCES: tuple[tuple[str, Check], ...] = (
    (r"conflict with holder and expiry", _holder),
    (r"granted, token > (\w+)\.token", _higher),
    (r"granted|ok", _done),
    (r"one row, (\S+)", _one_row),
    (r"(?:error )?(lease_expired|stale_token)(?:, .*)?", _refused),
    (r"200 cancelled|200 again, no second event", _cancelled),
    (r"used (\d+), remaining (\d+), resetsAt (\S+)", _budget),
    (r"no row of (\S+)", _no_foreign),
)


def as_expected(play: Play, number: int, step: Mapping[str, Any], said: Said) -> None:
    """Note a fault where a step expects something of its answer that is not so."""
    differs = DIFFERS.get(play.case.id)
    expected = (differs.steps if differs else {}).get(number, step.get("expect"))
    if expected is None:
        return
    for pattern, check in SENTENCES:
        if found := re.fullmatch(pattern, expected):
            play.fault(check(play, said, found), f"step {number}: {expected!r}, but {said.status} {said.text[:200]}")
            return
    raise ValueError(f"the expectation {expected!r} is not known to the driver")
