"""The history checker finds what it is for: each check has histories that must fail it, and none fails a good one."""

from dataclasses import replace

import pytest

from tests.faults import histories_of_causes, histories_of_leases, histories_of_mail, histories_of_tenants
from tests.faults.histories import GOOD, Table, both, sent
from tests.history import CHECKS, History, violations

TABLES: tuple[Table, ...] = (
    histories_of_mail.BROKEN,
    histories_of_leases.BROKEN,
    histories_of_causes.BROKEN,
    histories_of_tenants.BROKEN,
)
BROKEN = [(check, what, history) for table in TABLES for check, of in table.items() for what, history in of.items()]
KEPT: dict[str, History] = {
    **histories_of_mail.KEPT,
    **histories_of_leases.KEPT,
    **histories_of_causes.KEPT,
    **histories_of_tenants.KEPT,
}


def test_every_check_has_a_history_that_must_fail_it() -> None:
    assert {check for check, _, _ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize(("check", "what", "history"), BROKEN, ids=lambda one: one if isinstance(one, str) else "")
def test_a_broken_promise_is_found(check: str, what: str, history: History) -> None:
    assert check in {one.check for one in violations(history)}


@pytest.mark.parametrize("what", KEPT)
def test_a_history_in_which_all_was_kept_passes(what: str) -> None:
    assert violations(KEPT[what]) == []


def test_of_two_tenants_each_call_must_be_of_one() -> None:
    history = both(GOOD, replace(GOOD, rows=replace(GOOD.rows, sends=[])))

    with pytest.raises(ValueError, match="whose is a call"):
        violations(replace(history, calls=[sent()]))
