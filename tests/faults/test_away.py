"""A smarthost that was away for an hour: when it is back, what has waited goes out oldest first, and not as a herd.

Two agents have written in turns, so the retries of both wait, each due at a time of its own by jitter. While they go out,
both write on: what is new waits for what is older, whoever wrote it, and for nothing else.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gateway.sink import Sink
from tests.faults.conftest import Place
from tests.faults.crowd import mail
from tests.faults.stage import Order, Player, Stage, a_stage
from tests.faults.test_races import told
from tests.faults.test_unknown import ahead
from tests.history import History, Row

MANY = 300
BATCH = 50
FRESH = 40
LINES = 5
"""Attempts that the gateway may have under way at a time."""
FIRST = 60
HOUR = 3600


async def backlog(stage: Stage, agents: Sequence[Player]) -> None:
    """Both agents hand in batches side by side; returns when each mail has been tried once, in vain."""
    for start in range(0, MANY // 2, BATCH):
        numbers = range(start, start + BATCH)
        orders = [Order(a, "batch", {"sends": [mail(f"{a.name}-{n}") for n in numbers]}) for a in agents]
        for call in await stage.together(*orders):
            assert told(call)["queued"] == BATCH
            pairs = zip(call.body["sends"], told(call)["results"], strict=True)
            stage.calls += [replace(call, act="send", body=body, answer=result) for body, result in pairs]
    await stage.until(lambda history: all(row["attempts"] == 1 for row in history.rows.deliveries))


async def write_on(stage: Stage, agent: Player) -> None:
    """One mail after the other."""
    for number in range(FRESH // 2):
        assert told(await stage.one(Order(agent, "send", mail(f"fresh-{agent.name}-{number}"))))["status"] == "queued"


def by_age(history: History) -> list[Row]:
    """All deliveries in the order in which they were accepted."""
    return sorted(history.rows.deliveries, key=lambda row: (row["created_us"], row["id"]))


def last_starts(history: History) -> dict[str, int]:
    """When each delivery was claimed for the last time."""
    return {
        row["delivery_id"]: row["started_us"] for row in sorted(history.rows.attempts, key=lambda row: row["claim_no"])
    }


def most_at_once(history: History) -> int:
    """How many attempts were under way at a time, at the most; one that ends makes room for one that begins then."""
    rows = history.rows.attempts
    steps = sorted([(row["ended_us"], -1) for row in rows] + [(row["started_us"], 1) for row in rows])
    under_way = most = 0
    for _, step in steps:
        under_way += step
        most = max(most, under_way)
    return most


def passed(history: History) -> list[str]:
    """The mails that were claimed while an older one, which could have been, was left."""
    starts, rows = last_starts(history), by_age(history)
    return [
        row["id"]
        for index, row in enumerate(rows)
        if any(starts[old["id"]] > starts[row["id"]] > old["judged_us"] for old in rows[:index])
    ]


def lead(history: History, agents: Sequence[Player]) -> int:
    """By how many mails of the backlog one agent was ahead of the other, at the most, as they went out."""
    starts = last_starts(history)
    count: Counter[str] = Counter()
    most = 0
    for row in sorted((row for row in by_age(history) if row["attempts"] == 2), key=lambda row: starts[row["id"]]):
        count[row["actor"]] += 1
        most = max(most, abs(count[agents[0].id] - count[agents[1].id]))
    return most


async def test_after_an_hour_away_all_goes_out_oldest_first_and_without_a_herd(place: Place) -> None:
    pause = {"retry_first_seconds": FIRST, "retry_max_seconds": HOUR}
    async with a_stage(place.url, place.key, relay_concurrency=LINES, **pause) as stage:
        async with Sink() as away:
            port = away.port
        stage.settings["smarthost"] = f"smtp://127.0.0.1:{port}"
        served = await stage.gateway()
        agents = [await stage.agent(served, name) for name in ("one", "two")]
        await backlog(stage, agents)
        waiting = by_age(stage.history())
        async with Sink(bind=("127.0.0.1", port), on_mail=stage.took) as back:
            ahead(place.url, HOUR)
            await stage.until(lambda history: history.arrivals)
            await asyncio.gather(*(write_on(stage, agent) for agent in agents))
            during = stage.history()
            await stage.drained()
            assert back.sessions <= 2 * LINES
        history = stage.history()

    dues = [row["due_us"] for row in waiting]
    assert dues != sorted(dues)  # by their due times they would go out in another order
    assert max(dues) - min(dues) > FIRST / 4 * 1_000_000  # and not all at once, were the hour not over for all
    assert any(row["state"] == "queued" for row in during.rows.deliveries if row["attempts"] == 1)
    assert Counter(row["attempts"] for row in history.rows.deliveries) == {2: MANY, 1: FRESH}
    starts = last_starts(history)
    order = [starts[row["id"]] for row in waiting]
    assert order == sorted(order)
    assert passed(history) == []
    assert lead(history, agents) <= BATCH
    assert most_at_once(history) == LINES
    assert stage.judged(one_clock=False) == []
