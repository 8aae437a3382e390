"""What is unknown stays so until somebody decides, once: a repeat, another key, eight operators at a time, or a setting."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from gateway.store import Store
from gateway.store.tx import set_clock_offset
from tests.faults.conftest import Place
from tests.faults.crowd import mail
from tests.faults.meetings import described, share
from tests.faults.stage import Order, Player, Stage, a_stage, interleavings
from tests.faults.test_races import told
from tests.history import Row
from tests.servers import Served

ARRIVED, LOST = "DOT ONCE DROP", "DOT ONCE LOSE DROP"
HOUR = 3600
DECISIONS = {"retry": ("relayed", 2), "assume_sent": ("relayed", 1), "cancel": ("cancelled", 1)}
"""What becomes of a mail that had arrived, and how often it has come in the end."""


def ahead(url: str, seconds: float) -> None:
    """Set the store's clock ahead of its database's by so many seconds, or back."""
    store = Store.open(url)
    store.write((), lambda tx: set_clock_offset(tx, round(seconds * 1_000_000)))
    store.close()


async def unknown(stage: Stage) -> Row:
    """Wait until the only delivery is unknown."""
    await stage.until(lambda history: [row["state"] for row in history.rows.deliveries] == ["unknown"])
    return stage.history().rows.deliveries[0]


async def settled(stage: Stage, request: str, state: str) -> None:
    """Wait until the delivery of this send is in a state."""
    await stage.until(lambda history: [row["state"] for row in history.of_send[request]] == [state])


@pytest.mark.parametrize("script", [ARRIVED, LOST], ids=["arrived", "lost"])
async def test_an_unknown_send_is_told_and_not_sent_again(place: Place, script: str) -> None:
    async with a_stage(place.url, place.key, script=script) as stage:
        operator = await stage.player(await stage.gateway(), place.key, "operator")
        first = told(await stage.one(Order(operator, "send", mail("pat"))))
        await unknown(stage)

        again = told(await stage.one(Order(operator, "send", mail("pat"))))
        other = told(await stage.one(Order(operator, "send", mail("pat") | {"idempotencyKey": "other"})))
        reply = mail("pat") | {"idempotencyKey": "reply", "text": "something else\n"}
        cooled = told(await stage.one(Order(operator, "send", reply)))

        assert (again["requestId"], again["status"]) == (first["requestId"], "unknown")
        assert again["nextAction"] == "do not resend; ask or resolve"
        assert other["status"] == "blocked"
        assert {finding["reason"] for finding in other["findings"]} >= {"cooldown", "unknown_outstanding"}
        assert cooled["reason"] == "cooldown"
        assert len(stage.arrivals) == (script is ARRIVED)
        assert stage.judged() == []


async def an_operator(stage: Stage, maker: Player, served: Served, name: str) -> Player:
    """A person with a key of its own, which is bound to no agent."""
    made = told(await stage.one(Order(maker, "make_key", {"label": name, "scopes": ["read", "operator"]})))
    person = await stage.player(served, made["rawKey"], name)
    person.id = f"key:{made['id']}"
    return person


@pytest.fixture
def times(request: pytest.FixtureRequest) -> int:
    """How often all decide at once: 5 times, 20 with `--slow`."""
    return 20 if request.config.getoption("--slow") else 5


MIXED = "retry, assume_sent and cancel"


@pytest.mark.parametrize("decision", [*DECISIONS, MIXED])
async def test_of_eight_operators_and_an_agent_at_once_one_decides(
    place: Place, seed: int, times: int, decision: str
) -> None:
    names = [f"pat-{number}" for number in range(times)]
    script = "\n".join(f"DOT <{name}@example.net> ONCE DROP" for name in names)
    async with a_stage(place.url, place.key, script=script) as stage:
        dice = random.Random(seed)
        gateways = [await stage.gateway(), await stage.gateway()] if place.postgres else [await stage.gateway()]
        maker = await stage.player(gateways[0], place.key, "maker")
        people = [await an_operator(stage, maker, gateways[n % len(gateways)], f"operator-{n}") for n in range(8)]
        agent = await stage.agent(gateways[0], "agent")
        won: Counter[str] = Counter()
        for name in names:
            first = dice.sample(list(DECISIONS), len(DECISIONS))
            wanted = [first[n % 3] if decision == MIXED else decision for n in range(8)]
            won.update([await decided(stage, people, wanted, agent, name)])
        print(described(decision, stage.meetings, won))  # noqa: T201 - who of them was first

        assert share(stage.meetings) == 1
        assert stage.judged() == []


async def decided(stage: Stage, people: Sequence[Player], wanted: Sequence[str], agent: Player, name: str) -> str:
    """One round: a mail of the agent is unknown, all decide while it asks again. Returns the winner's name."""
    dice = random.Random(name)
    sent = told(await stage.one(Order(agent, "send", mail(name))))
    await settled(stage, sent["requestId"], "unknown")
    orders = [
        Order(person, "resolve", {"decision": wish}, {"request": sent["requestId"]}, late=late)
        for person, wish, late in zip(people, wanted, interleavings(dice, 8), strict=True)
    ]

    *answers, repeated = await stage.together(*orders, Order(agent, "send", mail(name)))
    state, times = DECISIONS[next(call for call in answers if call.status == 200).body["decision"]]
    await settled(stage, sent["requestId"], state)
    history = stage.history()
    (row,) = history.of_send[sent["requestId"]]
    (noted,) = (event for event in history.about[sent["requestId"]] if event["name"] == "send.resolved")
    winner = next(person for person, call in zip(people, answers, strict=True) if call.status == 200)

    assert sorted(call.status or 0 for call in answers) == [200, *[409] * 7]
    assert (noted["actor"], noted["data"]["decision"]) == (winner.id, wanted[people.index(winner)])
    assert told(repeated)["requestId"] == sent["requestId"]
    assert (row["state"], history.count(row)) == (state, times)
    return winner.name


@pytest.mark.parametrize(
    ("setting", "script", "ends"),
    [
        ("retry_once_after:1h", LOST, ("relayed", 0, 1)),
        ("assume_sent_after:1h", LOST, ("relayed", 1, 0)),
        ("hold", LOST, ("unknown", 0, 0)),
    ],
    ids=["retry", "assume", "hold"],
)
async def test_a_setting_decides_when_its_time_has_come(
    place: Place, setting: str, script: str, ends: tuple[str, int, int]
) -> None:
    async with a_stage(place.url, place.key, script=script, unknown=setting) as stage:
        served = await stage.gateway()
        operator = await stage.player(served, place.key, "operator")
        sent = told(await stage.one(Order(operator, "send", mail("pat"))))
        await unknown(stage)
        ahead(place.url, HOUR + 1)
        if setting == "hold":
            await stage.gateway()  # its first sweep comes at once
            await stage.one(Order(operator, "send", mail("other"), prefer="wait=20"))
        else:
            await stage.until(lambda history: history.rows.deliveries[0]["state"] == "relayed")
        row = next(row for row in stage.history().rows.deliveries if row["send_id"] == sent["requestId"])

        came = sum(one.to == "pat@example.net" for one in stage.arrivals)
        assert (row["state"], row["assumed"], came) == ends
        assert stage.judged(one_clock=False) == []
