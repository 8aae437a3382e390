"""Which agent a key acts as, changed by a person: a key is bound, pointed to another agent, or let go.

Several keys may be bound to one agent: so a key is rotated. Mail that is under way stays with the agent that it was sent as.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.store import events, keys
from gateway.store.keys import Key
from gateway.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Bind:
    """A wish to let a key act as an agent (its id) from now on, or with `None` as none.

    `may` sees the key that asks (`by`) and the one that is meant as they are under the lock, and raises where that may not be;
    without `by` a person asks at the store.
    """

    tenant: str
    key_id: str
    to: str | None
    actor: str = keys.STORE
    by: str | None = None
    may: Callable[[Key, Key], None] = lambda *_: None
    reason: str | None = None


def change(tx: Tx, wishes: Sequence[Bind]) -> list[tuple[Key, bool] | Exception]:
    """Bind keys that are in force, each on its own; the key, and whether that changed anything.

    NotFoundError where there is no such key, or what `may` raised.
    """
    done: list[tuple[Key, bool] | Exception] = []
    for wish in wishes:
        try:
            done.append(_change(tx, wish))
        except Exception as error:  # noqa: BLE001  (it is this caller's alone)
            done.append(error)
    return done


def _change(tx: Tx, wish: Bind) -> tuple[Key, bool]:
    key = keys.in_force(tx, wish.tenant, wish.key_id)
    if wish.by is not None:
        wish.may(keys.known(tx, wish.tenant, wish.by), key)
    if key.agent == wish.to:
        return key, False
    said = {} if wish.reason is None else {"reason": wish.reason}
    if wish.to is None:
        keys.set_agent(tx, wish.tenant, key.id, None)
        data = {"key": key.id, "agent": key.agent, **said}
        events.append(tx, [events.Event(wish.tenant, "key.unbound", actor=wish.actor, data=data)])
    else:
        more = said if key.agent is None else {"was": key.agent, **said}
        keys.bind_key(tx, wish.tenant, key.id, wish.to, actor=wish.actor, **more)
    return replace(key, agent=wish.to), True
