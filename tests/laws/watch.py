"""A database that notes every change of a delivery's state by itself, statement by statement."""

from typing import Any

import sqlalchemy as sa

from gateway.core.delivery import BORN, TRANSITIONS, State
from gateway.store import dialect_of
from tests.world import World, seeded

WATCHES = {
    "sqlite": [
        "CREATE TABLE seen (no INTEGER PRIMARY KEY, old TEXT, new TEXT, permitted INTEGER)",
        """CREATE TRIGGER seen_insert AFTER INSERT ON deliveries
           BEGIN INSERT INTO seen (old, new) VALUES (NULL, NEW.state); END""",
        """CREATE TRIGGER seen_update AFTER UPDATE OF state ON deliveries WHEN OLD.state <> NEW.state
           BEGIN INSERT INTO seen (old, new) VALUES (OLD.state, NEW.state); END""",
        """CREATE TRIGGER seen_delete AFTER DELETE ON deliveries
           BEGIN INSERT INTO seen (old, new, permitted) VALUES (OLD.state, NULL, OLD.permitted_us IS NOT NULL); END""",
    ],
    "postgresql": [
        "CREATE TABLE seen (no BIGSERIAL PRIMARY KEY, old TEXT, new TEXT, permitted INTEGER)",
        """CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF TG_OP = 'INSERT' THEN INSERT INTO seen (old, new) VALUES (NULL, NEW.state);
           ELSIF TG_OP = 'UPDATE' AND OLD.state <> NEW.state THEN
             INSERT INTO seen (old, new) VALUES (OLD.state, NEW.state);
           ELSIF TG_OP = 'DELETE' THEN
             INSERT INTO seen (old, new, permitted) VALUES (OLD.state, NULL, (OLD.permitted_us IS NOT NULL)::int);
           END IF; RETURN NULL; END $$""",
        "CREATE TRIGGER seen AFTER INSERT OR UPDATE OR DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION note()",
    ],
}


def watched(url: str) -> None:
    """Fills an empty database as a world begins and lets it note changes; the `prepare` of `Databases.fresh`."""
    seeded(url)
    dialect = dialect_of(url)
    with dialect.engine.connect() as connection:
        for statement in WATCHES[dialect.name]:
            connection.execute(sa.text(statement))


class Changes:
    """Reads what was noted since it was last asked."""

    def __init__(self, world: World) -> None:
        self._connection = world.store.dialect.connect(writer=False)
        self._last = 0

    def new(self) -> list[tuple[str | None, str | None, int | None]]:
        """Old state, new state, whether it had ever been permitted (of those taken away)."""
        text = f"SELECT no, old, new, permitted FROM seen WHERE no > {self._last} ORDER BY no"  # noqa: S608  (a number)
        rows: list[Any] = self._connection.execute(text).fetchall()
        self._last = max([self._last, *(row["no"] for row in rows)])
        return [(row["old"], row["new"], row["permitted"]) for row in rows]

    def close(self) -> None:
        self._connection.close()


def against_the_table(changes: list[tuple[str | None, str | None, int | None]]) -> list[tuple[str | None, str | None]]:
    """The changes that the table of ARCHITECTURE 8 does not have; a record judged anew is taken away and born again."""
    wrong: list[tuple[str | None, str | None]] = []
    for old, new, permitted in changes:
        if old is None:
            right = new is not None and State(new) in BORN
        elif new is None:
            right = State(old) is State.BLOCKED and not permitted
        else:
            right = State(new) in TRANSITIONS[State(old)]
        if not right:
            wrong.append((old, new))
    return wrong
