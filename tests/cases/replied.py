"""What the words of `expected` mean that are about replies over SMTP, and about what the SMTP door took."""

import sqlalchemy as sa

from gateway.core.delivery import State
from gateway.store.dialect import Dialect
from gateway.store.schema import deliveries, sends
from tests.cases.dialogue import DROPPED
from tests.cases.expect import expects
from tests.cases.play import Play
from tests.cases.received import EXPECTATIONS
from tests.cases.submit import fits

__all__ = ["EXPECTATIONS"]


@expects
async def smtp_last(play: Play, wanted: str) -> None:
    replies = play.facts.get("replies", [])
    play.fault(replies, "nothing was replied")
    for reply in replies[-1:]:
        ended = "spoken" in play.facts and DROPPED.match(reply)
        play.fault(ended or fits(wanted, reply), f"the last reply is {reply!r}, not {wanted}")


@expects
async def smtp_each_rcpt(play: Play, wanted: str) -> None:
    found = [reply for said, reply in play.facts.get("spoken", []) if said.upper().startswith("RCPT")]
    play.fault(found, "there was no RCPT")
    for reply in found:
        play.fault(fits(wanted, reply), f"to a RCPT: {reply!r}, not {wanted}")


@expects
async def submit_times(play: Play, count: int) -> None:
    found = sum(one.accepted for one in play.sends)
    play.fault(found == count, f"{found} of {count} were answered as accepted")


@expects
async def gateway_messages(play: Play, wanted: int | list[int]) -> None:
    allowed = wanted if isinstance(wanted, list) else [wanted]
    found = {row["id"] for row in play.house.store.read(lambda tx: tx.rows(_taken, {}))}
    play.fault(len(found) in allowed, f"{len(found)} messages were taken, not {wanted}")


def _taken(_: Dialect) -> sa.Executable:
    """Mails of which somebody is to get something."""
    blocked: sa.ColumnElement[str] = sa.literal_column(f"'{State.BLOCKED}'")
    joined = sa.and_(deliveries.c.tenant == sends.c.tenant, deliveries.c.send_id == sends.c.id)
    return sa.select(sends.c.id).join(deliveries, joined).where(deliveries.c.state != blocked)
