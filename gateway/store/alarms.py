"""Events that tell an operator once what findings tell every author: the first of a kind about a subject, then quiet."""

import sqlalchemy as sa

from gateway.core.mail import Submission
from gateway.core.record import plain
from gateway.core.verdict import PASS, Decision, Finding
from gateway.store import events
from gateway.store.dialect import Dialect
from gateway.store.schema import alarms
from gateway.store.tx import Tx

US = 1_000_000


def _set(d: Dialect) -> sa.Executable:
    """Be quiet until a time, unless it is quiet already."""
    insert = d.upsert(alarms)
    made: sa.Executable = insert.on_conflict_do_update(
        index_elements=[alarms.c.tenant, alarms.c.name, alarms.c.subject],
        set_={"quiet_us": insert.excluded.quiet_us},
        where=alarms.c.quiet_us <= sa.bindparam("now"),
    )
    return made


def go_off(tx: Tx, mail: Submission, decision: Decision) -> None:
    """Write the events of what stands in the mail's way, where none about the same subject is younger than the window.

    The subject is what the finding names as `loopOf`, else the recipient; decisions without such findings cost nothing.
    """
    for finding in decision.findings:
        if finding.reason.alarm and decision.weight(finding) > PASS:
            _go_off(tx, mail, finding)


def _go_off(tx: Tx, mail: Submission, finding: Finding) -> None:
    now, name = tx.now_of(mail.tenant), finding.reason.alarm
    subject = str(finding.extra.get("loopOf") or finding.recipient or mail.mailbox)
    quiet = now + int(str(finding.extra.get("windowSeconds", 0))) * US
    if tx.run(_set, {"tenant": mail.tenant, "name": name, "subject": subject, "quiet_us": quiet, "now": now}):
        about = {"reason": finding.reason.slug, "policy": finding.policy, "mailboxId": mail.mailbox, **finding.extra}
        contact = finding.recipient or ""
        events.append(tx, [events.Event(mail.tenant, name, mail.id, contact, mail.actor, plain(about))])
