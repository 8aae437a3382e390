"""Acts that are done only by a key that is still good: a door believes a key for a second, what an act changes stays.

The key is looked at under the tenant's lock, in the transaction of the act.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gateway.core.errors import GatewayError
from gateway.store import keys
from gateway.store.tx import Tx

Work = Callable[[Tx, Sequence[Any]], Sequence[Any]]


class KeyGoneError(GatewayError):
    """The key that asked has been revoked, or narrowed, since it was looked up."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish, and the key that asks with the scopes that it was believed to have; `key_id` is empty where there is none."""

    tenant: str
    key_id: str
    scopes: frozenset[str]
    wish: Any


@cache
def guarded(work: Work) -> Work:
    """The same work for `Asked` wishes: KeyGoneError is the result where the key is not what it was any more."""

    def act(tx: Tx, asked: Sequence[Asked]) -> list[Any]:
        good = [one for one in asked if _still(tx, one)]
        done = iter(work(tx, [one.wish for one in good]) if good else ())
        return [
            next(done) if any(one is kept for kept in good) else KeyGoneError("the key is good no longer")
            for one in asked
        ]

    return act


def _still(tx: Tx, asked: Asked) -> bool:
    if not asked.key_id:
        return True
    found = {key.id: key for key in keys.list_keys(tx, asked.tenant)}.get(asked.key_id)
    return (
        found is not None and found.status == "active" and ("operator" in found.scopes) >= ("operator" in asked.scopes)
    )
