"""A send's answer in words: what became of it, why, who stands in the way, until when, and what to do next."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from gateway.cli import printing
from gateway.cli.printing import clean

Body = dict[str, Any]

FAILED = frozenset({"blocked", "bounced", "unknown", "cancelled", "expired", "error"})
"""States in which a send has not done what was asked of it."""
CARE = frozenset({"pending_approval", "deferred", "scheduled"})
TO_LEAVE = frozenset({"pending_approval", "scheduled"})
"""States in which a send has its time to leave still before it."""
MINUTE, HOUR, DAY = 60, 3600, 86400


def went_well(body: Body, *, dry_run: bool = False) -> bool:
    """Whether the send was accepted and has not failed since; of a dry run, whether it would be accepted."""
    if dry_run:
        return bool(body.get("wouldAllow", clean(body.get("status")) not in FAILED))
    return clean(body.get("status")) not in FAILED


def explain(body: Body, *, dry_run: bool = False) -> None:
    """Print the answer of a send or of its dry run for people."""
    well = went_well(body, dry_run=dry_run)
    leaves = clean(body.get("status")) in TO_LEAVE
    printing.line(_headline(body, well=well, dry_run=dry_run), _style(body, well=well))
    printing.pairs(
        [
            ("why", body.get("detail")),
            *holder(body.get("leaseHolder")),
            ("consensus", body.get("consensusId")),
            ("cooldown until", when(body.get("cooldownExpiresAt"))),
            ("try again", when(body.get("retryAt"), estimate=bool(body.get("estimate")))),
            ("next attempt", when(body.get("nextAttemptAt"))),
            ("leaves at", when(body.get("scheduledAt")) if leaves else None),
            ("next", body.get("nextAction")),
            ("request", body.get("requestId")),
            ("key", body.get("idempotencyKey")),
            ("message id", body.get("messageId") if clean(body.get("status")) != "blocked" else None),
            ("warnings", listed(body.get("warnings"))),
        ]
    )
    findings = objects(body.get("findings"))
    if findings:
        printing.table(("rule", "verdict", "reason", "recipient", "until", "detail"), map(_finding, findings))
    recipients(body)


def objects(found: object) -> list[Body]:
    """The objects of a JSON list; nothing where it is none."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def listed(found: object) -> str:
    """The texts of a JSON list on one line."""
    return ", ".join(clean(one) for one in found) if isinstance(found, list) else ""


def recipients(body: Body) -> None:
    """Print where each recipient's mail is; one alone without a word of a server is in the headline already."""
    rows = objects(body.get("recipients"))
    if len(rows) > 1 or any(row.get("reply") or row.get("detail") for row in rows):
        head = ("recipient", "role", "status", "attempts", "reply")
        printing.table(
            head, [(r.get("email"), r.get("role"), r.get("status"), r.get("attempts"), reply(r)) for r in rows]
        )


def reply(row: Body) -> str:
    """A server's reply in one line, else what we say ourselves."""
    said = row.get("reply")
    if not isinstance(said, dict):
        return clean(row.get("detail") or row.get("reason"))
    return clean(" ".join(str(said[name]) for name in ("code", "enhanced", "text") if said.get(name)))


def holder(who: object) -> Iterator[tuple[str, object]]:
    """The rows that say who has a contact, by what, and until when."""
    if isinstance(who, dict):
        name = who.get("agentName") or who.get("agentId") or "an agent without a name"
        by = "by mail on its way" if who.get("kind") == "send" else "by a lease"
        yield "held by", f"{name} ({who['agentId']}), {by}" if who.get("agentId") else f"{name}, {by}"
        yield "held until", when(who.get("expiresAt"))
        yield "held for", who.get("requestId")


def when(moment: object, *, estimate: bool = False) -> str:
    """A time as it came (UTC), and how far off it is by this machine's clock."""
    if not isinstance(moment, str):
        return ""
    try:
        seconds = (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return clean(moment)
    far = _span(abs(seconds))
    about = "about " if estimate else ""
    return f"{clean(moment)} ({about}in {far})" if seconds >= 0 else f"{clean(moment)} ({far} ago)"


def _span(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    if seconds < DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:.1f} days"


def _headline(body: Body, *, well: bool, dry_run: bool) -> str:
    reason = clean(body.get("reason"))
    if dry_run:
        return "dry run: it would be accepted" if well else f"dry run: it would be refused: {reason}"
    again = " (an earlier receipt: nothing was sent again)" if body.get("replayed") else ""
    status = clean(body.get("status"))
    whom = "the agents' votes" if reason == "consensus_pending" else "a person"
    words = {"blocked": f"refused: {reason}", "pending_approval": f"held for {whom}: {reason}"}
    return words.get(status, status) + again


def _style(body: Body, *, well: bool) -> str:
    if not well:
        return "bad"
    return "care" if clean(body.get("status")) in CARE else "good"


def _finding(finding: Body) -> tuple[object, ...]:
    verdict = clean(finding.get("verdict"))
    if finding.get("observed"):
        verdict = f"{verdict} (observed only)"
    return (finding.get("rule"), verdict, *(finding.get(name) for name in ("reason", "recipient", "retryAt", "detail")))
