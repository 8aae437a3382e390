"""Tenants share processes, groups and tables, and are to each other as if each were alone.

Whatever two tenants do about the same people, under the same request ids, in the same transactions: what each is told and
what is written for it is what it would be without the other.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.address import parse
from gateway.core.delivery import Retry
from gateway.core.errors import ConflictError
from gateway.intake.walk import Ticket, walk
from gateway.store import leases, outbox, schema, settles, suppressions, waiting
from gateway.store.contacts import Acquire
from gateway.store.settles import Report
from tests.databases import Databases
from tests.laws.plays import OPTIONS, OUTCOMES, PEOPLE, Act, Lease, Mail, Suppressed, fates, mails, play, timeless, told
from tests.world import NEIGHBOUR, ROLL, TENANT, World, a_world

WHOM = PEOPLE[:3]
SEEDED = {"mailboxes", "agents", "api_keys"}
TABLES = tuple(table for table in schema.metadata.sorted_tables if "tenant" in table.c and table.name not in SEEDED)
MADE = {
    ("sends", "fingerprint"),
    ("deliveries", "epoch"),
    ("attempts", "epoch"),
    ("contacts", "lease_id"),
    ("events", "id"),
    ("suppressions", "id"),
}
"""Columns with random ids, or made of one."""
RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|sup_[0-9a-f]{24}")
"""Ids of leases and of suppressions."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tenant does: a past, mails with their fates, and while they are claimed a suppression and a take-over."""

    past: list[Act]
    mails: list[tuple[Mail, str]]
    suppressed: str | None
    taken: str | None


pasts = st.lists(
    st.builds(Lease, agent=st.sampled_from("ab"), person=st.sampled_from(WHOM), released=st.booleans())
    | st.builds(Suppressed, subject=st.sampled_from(WHOM)),
    max_size=3,
)
sends = mails.map(lambda mail: Mail(mail.agent, mail.to, mail.key, mail.subject, mail.kind, mail.token, mail.after))
plans = st.builds(
    Plan,
    past=pasts,
    mails=st.lists(st.tuples(sends, fates), min_size=1, max_size=4),
    suppressed=st.none() | st.sampled_from(WHOM),
    taken=st.none() | st.sampled_from(WHOM),
)


@dataclass(slots=True)
class Course:
    """What came of the plans, by tenant; each step is one transaction for all of them."""

    worlds: Mapping[str, World]
    plans: Mapping[str, Plan]
    told: dict[str, list[Any]]

    @property
    def store(self) -> Any:  # noqa: ANN401
        return next(iter(self.worlds.values())).store

    def write(self, work: Any) -> Any:  # noqa: ANN401
        return self.store.write(tuple(sorted(self.worlds)), work)

    def note(self, tenant: str, *words: object) -> None:
        self.told[tenant].append(words)

    async def run(self) -> None:
        for tenant, plan in self.plans.items():
            await play(self.worlds[tenant], plan.past)
        fate = self.submit()
        claims = self.write(lambda tx: outbox.claim(tx, [self.wish()]))[0]
        self.meanwhile()
        going = [c for c in claims if fate.get((c.tenant, c.send)) not in {"queued", "cancelled", "claimed"}]
        for claim, word in zip(going, self.write(lambda tx: outbox.permit(tx, going)), strict=True):
            self.note(claim.tenant, "permit", claim.delivery, claim.claim_no, claim.address, word)
        ended = [c for c in going if fate.get((c.tenant, c.send)) in OUTCOMES]
        reports = [Report(c, OUTCOMES[fate[c.tenant, c.send]], Retry(), ROLL) for c in ended]
        for claim, state in zip(ended, self.write(lambda tx: settles.settle_all(tx, reports)), strict=True):
            self.note(claim.tenant, "settle", claim.delivery, state)
        self.write(lambda tx: waiting.recover(tx, [self.store.epoch]))
        await next(iter(self.worlds.values())).look()

    def wish(self) -> outbox.ClaimRequest:
        return outbox.ClaimRequest(self.store.epoch, 100, 600_000_000)

    def submit(self) -> dict[tuple[str, str], str]:
        """All mails in one group, the tenants' by turns; returns the fates by tenant and request."""
        lists = [[(t, *pair) for pair in self.plans[t].mails] for t in self.plans]
        mixed = [one for turn in zip_longest(*lists) for one in turn if one]
        tickets: list[Ticket] = [mail.ticket(self.worlds[tenant]) for tenant, mail, _ in mixed]
        rules = next(iter(self.worlds.values())).nodes[0].intake.rules
        fate = {}
        for (tenant, _, end), result in zip(
            mixed, self.write(lambda tx: walk(tx, tickets, rules, write=True)), strict=True
        ):
            self.note(tenant, "told", told(result))
            if not isinstance(result, ConflictError) and not result.replayed:
                fate[tenant, result.record.id] = end
        return fate

    def meanwhile(self) -> None:
        """Suppressions and take-overs, while everything is claimed."""
        subjects = [(tenant, plan.suppressed) for tenant, plan in self.plans.items() if plan.suppressed]
        entries = [(tenant, suppressions.New(key(who), who, "tenant", "manual_dnc")) for tenant, who in subjects]
        for (tenant, _), (_, stopped) in zip(
            entries, self.write(lambda tx: suppressions.add(tx, entries)), strict=True
        ):
            self.note(tenant, "stopped", stopped)
        wishes = [
            Acquire(tenant, self.worlds[tenant].agent["c"], key(who), who, "", 600, operator_reason="a person says so")
            for tenant, plan in self.plans.items()
            if (who := plan.taken)
        ]
        for wish, got in zip(wishes, self.write(lambda tx: leases.serve(tx, wishes)), strict=True):
            self.note(wish.tenant, "lease", got.token, got.withdrew)


def key(address: str) -> str:
    return parse(address).key


def plain(world: World, value: Any) -> Any:  # noqa: ANN401
    """What was told or written, with names in place of random ids and without times."""
    if isinstance(value, Mapping):
        return {name: plain(world, member) for name, member in timeless(value).items() if not name.endswith("_us")}
    if isinstance(value, list | tuple):
        return [plain(world, member) for member in value]
    if not isinstance(value, str):
        return value
    if value.startswith("{"):
        return plain(world, json.loads(value))
    names = {**world.agent, **{f"box-{n}": world.box[box].id for n, box in enumerate(world.boxes)}, "key": world.key}
    for name, ident in names.items():
        value = value.replace(ident, name)
    return RANDOM.sub("random", value)


def left(world: World) -> list[Any]:
    """All rows that the tenant has."""
    rows = [(t.name, row) for t in TABLES for row in world.rows_of(t) if row["tenant"] == world.tenant]
    return [(name, {k: v for k, v in row.items() if (name, k) not in MADE}) for name, row in rows]


async def course(databases: Databases, plans: Mapping[str, Plan]) -> dict[str, list[Any]]:
    """What each tenant was told, and what is written for it in the end."""
    async with a_world(databases, OPTIONS) as world:
        worlds = {TENANT: world, NEIGHBOUR: world.neighbour()}
        run = Course({tenant: worlds[tenant] for tenant in plans}, plans, {tenant: [] for tenant in plans})
        await run.run()
        return {t: plain(w, run.told[t]) + sorted(plain(w, left(w)), key=repr) for t, w in run.worlds.items()}


@settings(max_examples=25)
@given(mine=plans, theirs=plans)
async def test_two_tenants_in_the_same_groups_are_as_if_each_were_alone(
    databases: Databases, mine: Plan, theirs: Plan
) -> None:
    together = await course(databases, {TENANT: mine, NEIGHBOUR: theirs})
    alone = await course(databases, {TENANT: mine}) | await course(databases, {NEIGHBOUR: theirs})

    for tenant, what in together.items():
        for here, there in zip(what, alone[tenant], strict=True):
            assert here == there
