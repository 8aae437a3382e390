"""One history of a run, and what must be true of it: requests and answers, arrivals at the sink, rows and events at the end.

Whoever runs agents against gateways puts every request with its answer into a `History`, whatever became of it, every
mail that the sink took, and at the end all rows of the store. `violations` then says which promise was broken where; each
promise is one function in `CHECKS`, written down in `promises/`. Nothing here knows how the gateway works inside: rows and
events are its record.

Every promise is looked at for each tenant alone, by its own calls, arrivals and rows: what another tenant has, of the same
people too, is no excuse and no hindrance.

Our own times are microseconds since 1970 by this machine's clock, the store's by its own; they are compared with each
other only where `one_clock` says that they are the same clock. A request without an answer may have happened or not.
The checks suppose that a mail's Message-ID is its own.
"""

from email.parser import BytesHeaderParser

import sqlalchemy as sa

from gateway.sink import Mail
from gateway.store import dialect_of, schema
from tests.promises import causes, leases, log, mail
from tests.promises.record import Check, History
from tests.promises.shapes import SLACK, Arrival, Call, Row, Rows, Violation, key_of, moment

__all__ = [
    "CHECKS",
    "SLACK",
    "Arrival",
    "Call",
    "History",
    "Row",
    "Rows",
    "Violation",
    "arrivals_of",
    "key_of",
    "moment",
    "read_rows",
    "violations",
]

PROMISES: tuple[Check, ...] = (
    mail.one_delivery_for_one_send,
    mail.none_to_the_suppressed,
    mail.none_within_a_cooldown,
    mail.one_state_that_matches_the_sink,
    mail.no_dot_without_a_permit,
    mail.answers_agree_with_the_record,
    mail.one_id_for_one_key,
    leases.none_by_a_stale_token,
    leases.no_permit_after_a_take_over,
    leases.one_holder_at_a_time,
    leases.tokens_rise,
    causes.nothing_ends_without_a_cause,
    causes.causes_come_before_their_effects,
    log.what_was_answered_and_arrived_is_on_record,
    log.nobody_acts_unasked,
)
CHECKS: dict[str, Check] = {promise.__name__: promise for promise in PROMISES}
ONE_STATE = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ"}
"""By database: how to read one state of the store, in which rows and events belong together, while others write."""


def violations(history: History) -> list[Violation]:
    """What is wrong with a history; an empty list where every promise was kept, to every tenant."""
    parts = history.parts()
    return [Violation(name, where) for name, promise in CHECKS.items() for part in parts for where in promise(part)]


def arrivals_of(taken: Mail, at: int) -> list[Arrival]:
    """The arrivals of one mail that a sink took at `at`."""
    message_id = BytesHeaderParser().parsebytes(taken.content)["message-id"].strip(" \t\r\n<>")  # it may be folded
    return [Arrival(at, to, message_id) for to in taken.recipients]


def read_rows(url: str) -> Rows:
    """All rows of a store at one moment, read past the gateway."""
    dialect = dialect_of(url)
    tables = ("sends", "deliveries", "attempts", "decisions", "events")
    with dialect.engine.connect() as connection:
        connection.exec_driver_sql(ONE_STATE[dialect.name])
        read = {
            name: [dict(r) for r in connection.execute(sa.select(getattr(schema, name))).mappings()] for name in tables
        }
        connection.exec_driver_sql("COMMIT")
    dialect.engine.dispose()
    return Rows(**read)
