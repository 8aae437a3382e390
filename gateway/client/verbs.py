"""The methods that both clients have: each request of `calls` and `granting`, blocking in one client, awaited in the other."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, get_args, overload

from gateway.client import calls, granting
from gateway.client.call import Call

P = ParamSpec("P")
T = TypeVar("T")
Later = Coroutine[Any, Any, T]


class Blocking(Protocol):
    """A client that answers when the answer is there."""

    blocking: bool

    def ask(self, call: Call[T]) -> T:
        """Carry a request out."""
        ...


class Waiting(Protocol):
    """A client that is awaited."""

    waiting: bool

    async def ask(self, call: Call[T]) -> T:
        """Carry a request out."""
        ...


class Verb(Generic[P, T]):
    """A function that makes a request, as a method that carries it out; on the class it looks like any other method."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        """Take its name, its sentences and its arguments; it returns what the request's answer is read as."""
        self.make = make
        functools.update_wrapper(self, make)
        self.__name__ = make.__name__
        self.__qualname__ = f"Verbs.{make.__name__}"
        of_make = inspect.signature(make)
        bound = of_make.replace(return_annotation=get_args(of_make.return_annotation)[0])
        client = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.bound = bound
        self.__signature__ = bound.replace(parameters=[client, *bound.parameters.values()])

    def __call__(self, client: Blocking | Waiting, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401  (as below)
        """Do as the method of that client does."""
        return self.__get__(client, type(client))(*args, **kwargs)

    @overload
    def __get__(self, client: None, owner: type) -> "Verb[P, T]": ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Waiting, owner: type) -> Callable[P, Later[T]]: ...
    def __get__(self, client: Blocking | Waiting | None, owner: type) -> Any:
        if client is None:
            return self
        ask: Callable[[Call[T]], Any] = client.ask

        @functools.wraps(self.make)
        def act(*args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401  (what `ask` returns, or its coroutine)
            return ask(self.make(*args, **kwargs))

        act.__signature__ = self.bound  # type: ignore[attr-defined]
        return act


class Verbs:
    """What a gateway can be asked."""

    whoami = Verb(calls.whoami)
    register = Verb(calls.register)
    agents = Verb(calls.agents)
    heartbeat = Verb(calls.heartbeat)
    config = Verb(calls.config)
    update_config = Verb(calls.update_config)

    acquire = Verb(calls.acquire)
    renew = Verb(calls.renew)
    release = Verb(calls.release)
    leases = Verb(calls.leases)

    send = Verb(calls.send)
    dry_run = Verb(calls.dry_run)
    batch = Verb(calls.batch)
    request = Verb(calls.request)
    request_by_key = Verb(calls.request_by_key)
    cancel = Verb(calls.cancel)
    resolve = Verb(calls.resolve)
    trace = Verb(calls.trace)
    budget = Verb(calls.budget)

    check_suppression = Verb(calls.check_suppression)
    add_suppression = Verb(calls.add_suppression)

    create_consensus = Verb(calls.create_consensus)
    consensus = Verb(calls.consensus)
    vote = Verb(calls.vote)

    events = Verb(calls.events)

    create_key = Verb(granting.create_key)
    api_keys = Verb(granting.api_keys)
    change_key = Verb(granting.change_key)
    revoke_key = Verb(granting.revoke_key)
    bind_key = Verb(granting.bind_key)
    unbind_key = Verb(granting.unbind_key)

    invite = Verb(granting.invite)
    invites = Verb(granting.invites)
    revoke_invite = Verb(granting.revoke_invite)
    claim = Verb(granting.claim)

    decisions = Verb(granting.decisions)
    decision = Verb(granting.decision)
    confirm = Verb(granting.confirm)
    reject = Verb(granting.reject)
