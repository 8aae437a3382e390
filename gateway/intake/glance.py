"""A look at one recipient before the mail is whole: some of the policies, on the facts as they are now, nothing written.

Those who ask at the same time share one read. What it says is never the last word: the whole mail is judged when it is
there. It knows no protocol.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from gateway.core.facts import Ask
from gateway.core.judge import Rule, brief, judge
from gateway.core.mail import Submission
from gateway.core.verdict import Decision
from gateway.store import Store
from gateway.store import facts as fact_store
from gateway.store.tx import Tx

GROUP_MAX = 64
"""Looks that share one read."""
MANY = 2**31


class Glance:
    """Judges by those of `rules` that need nothing but the envelope, by name."""

    def __init__(
        self, store: Store, rules: Sequence[Rule], names: Sequence[str] = ("recipient", "suppression")
    ) -> None:
        """Read from `store`; of `rules` only those named are asked."""
        self._store = store
        self._rules = tuple(rule for rule in rules if rule.name in names)
        self._waiting: list[tuple[Submission, asyncio.Future[Decision]]] = []
        self._work: asyncio.Task[None] | None = None

    async def look(self, mail: Submission) -> Decision:
        """What these policies say of a mail, all of whose recipients may be looked up. Raises StoreUnavailableError."""
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting.append((mail, future))
        if self._work is None:
            self._work = asyncio.create_task(self._run())
        return await future

    @property
    def most(self) -> int:
        """How many recipients a mail may have by these policies; a large number where none of them says it."""
        found = (getattr(rule.policy, "max_recipients", None) for rule in self._rules)
        return min((one for one in found if isinstance(one, int)), default=MANY)

    async def _run(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:GROUP_MAX], self._waiting[GROUP_MAX:]
                for tenant in sorted({mail.tenant for mail, _ in group}):
                    await self._answer(tenant, [one for one in group if one[0].tenant == tenant])
        finally:
            self._work = None

    async def _answer(self, tenant: str, group: list[tuple[Submission, asyncio.Future[Decision]]]) -> None:
        mails = [mail for mail, _ in group]
        try:
            found = await asyncio.to_thread(self._store.read, lambda tx: self._judge(tx, tenant, mails), (tenant,))
        except Exception as error:  # noqa: BLE001  (each who asked is told; nobody else is there)
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), decision in zip(group, found, strict=True):
            if not future.done():
                future.set_result(decision)

    def _judge(self, tx: Tx, tenant: str, mails: Sequence[Submission]) -> list[Decision]:
        cases = [brief(mail, self._rules) for mail in mails]
        asks = frozenset[Ask[Any]]().union(*(case.questions for case in cases))
        facts = fact_store.load(tx, tenant, asks)
        return [judge(case, self._rules, facts) for case in cases]
