"""Law 9: replay is quiet; except that a blocked record is judged anew."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.delivery import State
from gateway.core.errors import ConflictError
from gateway.core.record import Receipt
from gateway.store import records
from tests.databases import Databases
from tests.laws.plays import KEYS, OPTIONS, Act, Mail, Sent, fates, mails, pasts, play, submit, told
from tests.world import TENANT, World, a_world

keyed = st.builds(Sent, mail=mails.flatmap(lambda m: st.sampled_from(KEYS).map(lambda k: _with_key(m, k))), fate=fates)


def _with_key(mail: Mail, key: str) -> Mail:
    from dataclasses import replace

    return replace(mail, key=key, after=None)


def decisions(world: World, request: str) -> int:
    """How many decisions there are about a send."""
    return len(world.store.read(lambda tx: records.decisions_of(tx, TENANT, request)))


@settings(max_examples=10)
@given(past=pasts, sends=st.lists(keyed, min_size=1, max_size=3), more=pasts, times=st.integers(1, 3))
async def test_a_repeat_gets_the_first_receipt_with_todays_status_and_nothing_is_written(
    databases: Databases, past: list[Act], sends: list[Sent], more: list[Act], times: int
) -> None:
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        await play(world, list(sends))
        first = [(sent.mail, await submit(world, sent.mail)) for sent in sends]
        await play(world, more)
        for mail, receipt in first:
            if isinstance(receipt, ConflictError) or receipt.record.refused:
                continue
            record, before = world.record(receipt.record.id), world.rows()

            again = await asyncio.gather(*(submit(world, mail) for _ in range(times)))

            if record.refused:  # stopped in flight since: judged anew, under the same id
                assert isinstance(again[0], Receipt)
                assert again[0].record.id == record.id
                continue
            assert world.rows() == before
            for one in again:
                assert isinstance(one, Receipt)
                assert told(one) == told(Receipt(record, replayed=True))


@settings(max_examples=10)
@given(past=pasts, mail=mails, seconds=st.sampled_from([0, 30, 61, 4000]))
async def test_a_blocked_record_is_judged_anew_or_counted_and_never_doubled(
    databases: Databases, past: list[Act], mail: Mail, seconds: int
) -> None:
    mail = _with_key(mail, "of its own")
    async with a_world(databases, OPTIONS) as world:
        await play(world, past)
        first = await submit(world, mail)
        assert isinstance(first, Receipt)
        if not first.record.refused:
            return
        world.advance(seconds)
        count = decisions(world, first.record.id)

        again = await submit(world, mail)

        assert isinstance(again, Receipt)
        assert not again.replayed
        assert again.record.id == first.record.id
        now = world.record(first.record.id)
        assert len(now.deliveries) == len(first.record.deliveries)
        if decisions(world, now.id) == count:
            assert seconds < 60
            assert now.repeats == first.record.repeats + 1
            assert now.decision["reason"] == again.record.decision["reason"]
        else:
            assert now.decision_no == count + 1
            assert set(world.states(now.id)) <= {State.QUEUED, State.SCHEDULED, State.HELD, State.BLOCKED}
