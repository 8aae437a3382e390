"""Mailboxes as their owners handle them: make, change, pause and resume; agents may tighten, people loosen.

The registry itself is in `agents.py`; what a pause does to mail is in `forbid.py`. Each act is one transaction.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa

from gateway.core.address import Address
from gateway.core.controls import loosened
from gateway.core.errors import ConflictError, GatewayError, HumanDecisionError, NotFoundError
from gateway.store import agents, events, forbid
from gateway.store.agents import Mailbox
from gateway.store.dialect import Dialect
from gateway.store.schema import mailboxes
from gateway.store.tx import Tx

TENANT: sa.BindParameter[str] = sa.bindparam("tenant")
ACTIVE, PAUSED, PROVISIONING = "active", "paused", "provisioning"
W = TypeVar("W")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class New:
    """A mailbox to make. `person` says whether a person's key asks: only that brings a new domain in, and options.

    `default_cooldown` (seconds) is what the gateway's own settings say.
    """

    tenant: str
    address: Address
    actor: str
    person: bool
    display_name: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    default_cooldown: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a mailbox: `named` are the columns that it names (display_name, status), `options` the controls.

    A control that is `None` goes back to what is usual; with `whole` those that are not named do so too.
    """

    tenant: str
    mailbox: str
    actor: str
    person: bool
    named: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False
    default_cooldown: int = 0


@dataclass(frozen=True, slots=True)
class Changed:
    """The mailbox as it is then, and how many deliveries its pause has held, or its resumption let go."""

    mailbox: Mailbox
    held: int = 0
    released: int = 0


class NotPausableError(GatewayError):
    """Only an active mailbox can be paused, and only a paused or active one resumed."""


def _by_key(_: Dialect) -> sa.Executable:
    return sa.select(mailboxes.c.tenant, mailboxes.c.id).where(mailboxes.c.key == sa.bindparam("person"))


def _save(_: Dialect) -> sa.Executable:
    return (
        sa.update(mailboxes)
        .where(mailboxes.c.tenant == TENANT, mailboxes.c.id == sa.bindparam("id_"))
        .values(
            display_name=sa.bindparam("called"),
            status=sa.bindparam("to"),
            options=sa.bindparam("document"),
            updated_us=sa.bindparam("now"),
        )
    )


def _one(_: Dialect) -> sa.Executable:
    return sa.select(mailboxes).where(mailboxes.c.tenant == TENANT, mailboxes.c.id == sa.bindparam("id_"))


def _each(wishes: Sequence[W], act: Callable[[W], R]) -> list[R | Exception]:
    """Each on its own: one that cannot be done harms no other. An act looks before it writes."""
    done: list[R | Exception] = []
    for wish in wishes:
        try:
            done.append(act(wish))
        except GatewayError as error:
            done.append(error)
    return done


def find(tx: Tx, tenant: str, mailbox: str) -> Mailbox:
    """A mailbox by its id. Raises NotFoundError."""
    row = tx.row(_one, {"tenant": tenant, "id_": mailbox})
    if row is None:
        raise NotFoundError("no such mailbox")
    return agents.mailbox_of(row)


def create(tx: Tx, wishes: Sequence[New]) -> list[Mailbox | Exception]:
    """Make mailboxes. One whose domain is not among the tenant's own waits as `provisioning` for a person.

    ConflictError `mailbox_exists` (with mailboxId) or `address_taken` (another tenant's), HumanDecisionError.
    """
    return _each(wishes, lambda wish: _create(tx, wish))


def _create(tx: Tx, wish: New) -> Mailbox:
    for row in tx.rows(_by_key, {"person": wish.address.key}):
        if row["tenant"] == wish.tenant:
            raise ConflictError("mailbox_exists", "the tenant has this mailbox already", mailboxId=row["id"])
        raise ConflictError("address_taken", "the address belongs to another tenant")
    profile = tx.profile(wish.tenant)
    options = {name: value for name, value in wish.options.items() if value is not None}
    usual = {"cooldown": wish.default_cooldown if profile.cooldown is None else profile.cooldown}
    _refuse_loosening("mailbox", "new", loosened({}, options, usual), person=wish.person)
    known = wish.address.domain in profile.own_domains
    status = ACTIVE if wish.person or known else PROVISIONING
    box = agents.insert_mailbox(tx, wish.tenant, wish.address, status, options, wish.display_name)
    if status == ACTIVE:
        agents.own_domain(tx, wish.tenant, wish.address.domain)
    _note(tx, wish.tenant, "mailbox.created", wish.actor, box, {"status": status})
    return box


def change(tx: Tx, wishes: Sequence[Change]) -> list[Changed | Exception]:
    """Change mailboxes, and hold or let go their mail where the status changes.

    NotFoundError, HumanDecisionError, NotPausableError.
    """
    return _each(wishes, lambda wish: _change(tx, wish))


def _change(tx: Tx, wish: Change) -> Changed:
    box = find(tx, wish.tenant, wish.mailbox)
    profile = tx.profile(wish.tenant)
    merged = {**({} if wish.whole else box.options), **wish.options}
    options = {name: value for name, value in merged.items() if value is not None}
    usual = {"cooldown": wish.default_cooldown if profile.cooldown is None else profile.cooldown}
    status = wish.named.get("status", box.status)
    loosens = loosened(box.options, options, usual)
    if status == ACTIVE != box.status:
        loosens.append("status")
    _refuse_loosening("mailbox-resume" if loosens == ["status"] else "mailbox", box.id, loosens, person=wish.person)
    if status == PAUSED and box.status not in (ACTIVE, PAUSED):
        raise NotPausableError("only an active mailbox can be paused")
    row = {"tenant": wish.tenant, "id_": box.id, "now": tx.now_of(wish.tenant), "to": status}
    named = {"called": wish.named.get("display_name", box.display_name), "document": json.dumps(options)}
    tx.run(_save, row | named)
    held = forbid.hold_mailbox(tx, wish.tenant, box.id) if status == PAUSED else 0
    released = forbid.let_go(tx, wish.tenant, box.id) if status == ACTIVE else 0
    if status == ACTIVE != box.status:
        agents.own_domain(tx, wish.tenant, box.address.rpartition("@")[2])
    what = {PAUSED: "mailbox.paused", ACTIVE: "mailbox.resumed"} if status != box.status else {}
    about = {"status": status, "held": held, "released": released, "loosened": loosens}
    _note(tx, wish.tenant, what.get(status, "mailbox.changed"), wish.actor, box, about)
    return Changed(find(tx, wish.tenant, box.id), held, released)


def pause(tx: Tx, tenant: str, mailbox: str, actor: str = "") -> Changed:
    """Pause a mailbox: its queued and claimed mail is held in the same transaction. Raises NotFoundError."""
    return _change(tx, Change(tenant, mailbox, actor, person=False, named={"status": PAUSED}))


def resume(tx: Tx, tenant: str, mailbox: str, actor: str = "") -> Changed:
    """Let a paused mailbox go on, as a person: what its pause held is judged again. Raises NotFoundError."""
    return _change(tx, Change(tenant, mailbox, actor, person=True, named={"status": ACTIVE}))


def _refuse_loosening(kind: str, what: str, loosens: Sequence[str], *, person: bool) -> None:
    if loosens and not person:
        raise HumanDecisionError(kind, what, loosens)


def _note(tx: Tx, tenant: str, name: str, actor: str, box: Mailbox, about: Mapping[str, Any]) -> None:
    events.append(tx, [events.Event(tenant, name, actor=actor, data={"mailbox": box.id, **about})])
