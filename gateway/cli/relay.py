"""`relay ...`: close and open the relay for the whole gateway; mail is taken meanwhile and waits.

They open the store that the settings name, for the gate is all tenants'. With a URL or a key, or where there is no store
but a profile, they ask a gateway over HTTP, which lets a tenant's operator do it where it is the only tenant.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gateway.cli import keystore, options, printing
from gateway.cli.api import Api
from gateway.cli.printing import fail, member
from gateway.cli.setup import settings_of

if TYPE_CHECKING:
    from gateway.store.tx import Tx

T = TypeVar("T")
PATH = "/v1/ops/relay"


def pause(
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Close the relay: nothing is claimed, and no mail gets past its last dot; what is past it still ends."""
    _set(config, url, key, paused=True, as_json=as_json)


def resume(
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Open the relay again."""
    _set(config, url, key, paused=False, as_json=as_json)


def status(
    config: options.Config = None,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Say whether the relay is paused."""
    api = _remote(url, key, config, as_json=as_json)
    if api is None:
        found = {"paused": _here(config, lambda tx: tx.relay_paused())}
    else:
        found = {"paused": bool(member(api.ask("GET", PATH).body, "paused"))}
    _told(paused=found["paused"], as_json=as_json)


def _set(config: str | None, url: str | None, key: str | None, *, paused: bool, as_json: bool) -> None:
    api: Api | None = _remote(url, key, config, as_json=as_json)
    if api is not None:
        api.ask("POST", f"{PATH}/{'pause' if paused else 'resume'}", body={})
    else:

        def work(tx: "Tx") -> None:
            from gateway.store.forbid import pause_relay

            pause_relay(tx, paused=paused)

        _here(config, work)
    _told(paused=paused, as_json=as_json)


def _remote(url: str | None, key: str | None, config: str | None, *, as_json: bool) -> Api | None:
    """The gateway to ask over HTTP, or `None` where the store is here."""
    if url is not None or key is not None or keystore.elsewhere(config):
        return Api(url, key, as_json=as_json)
    return None


def _here(config: str | None, work: "Callable[[Tx], T]") -> T:
    """Run `work` on the store that the settings name; what goes wrong ends the command with one line."""
    from gateway.core.errors import GatewayError
    from gateway.store import Store

    settings = settings_of(config)
    try:
        store = Store.open(settings.database_url)
        try:
            return store.write((), work)
        finally:
            store.close()
    except (ValueError, GatewayError) as error:
        fail(error, 2 if isinstance(error, ValueError) else 1)


def _told(*, paused: bool, as_json: bool) -> None:
    if as_json:
        printing.document({"paused": paused})
    else:
        printing.line("the relay is paused" if paused else "the relay is open", "care" if paused else "good")
