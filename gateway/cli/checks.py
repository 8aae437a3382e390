"""What `gateway doctor` looks at: the store, its migrations and durability, what is in it, the profile, the HTTP door.

Each check says ok, warn or fail, and what to do. Nothing is changed, and no database is made by looking.
"""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway import profile

if TYPE_CHECKING:
    from gateway.settings import Settings
    from gateway.store import Store

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CLOCK_SECONDS = 5.0
"""How far the database's clock may be from this machine's before it is worth a word."""

READY_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's: `state` is ok, warn or fail; `todo` is what to do where it is not ok."""

    name: str
    state: str
    found: str
    todo: str = ""


def ok(name: str, found: str) -> Check:
    """Nothing to do."""
    return Check(name, "ok", found)


def warn(name: str, found: str, todo: str) -> Check:
    """It works, but somebody should know."""
    return Check(name, "warn", found, todo)


def broken(name: str, found: str, todo: str) -> Check:
    """It does not work."""
    return Check(name, "fail", found, todo)


def store_checks(settings: "Settings") -> Iterator[Check]:
    """The database: is it there, on the newest schema, does it keep what it acknowledges, is something in it."""
    from gateway.core.errors import StoreUnavailableError
    from gateway.store import Store, dialect_of
    from gateway.store.migrate import revisions

    try:
        dialect = dialect_of(settings.database_url)
        current, newest = revisions(dialect)
    except ValueError as error:
        yield broken("store", str(error), "set DATABASE_URL, or start the database")
        return
    yield ok("store", f"{dialect.name} can be reached")
    if current != newest:
        state = "empty" if current is None else f"at revision {current}"
        found = f"the database is {state}, this version needs {newest}"
        yield broken("migrations", found, "run `gateway init` or `gateway migrate`")
        return
    yield ok("migrations", f"at revision {newest}, the newest")
    store = Store(dialect)
    try:
        yield from _health(store)
        yield from _contents(store)
    except StoreUnavailableError as error:
        yield broken("store", f"it cannot be written: {error}", "look for a process that holds it, or a full disk")
    finally:
        store.close()


def _health(store: "Store") -> Iterator[Check]:
    from gateway.store.health import look

    health = look(store)
    for trait in health.traits:
        name = f"{store.dialect.name} {trait.name}"
        if trait.right:
            yield ok(name, trait.value)
        else:
            todo = f"it must be {trait.wanted}, or an acknowledged mail may be lost"
            yield broken(name, trait.value, f"{todo}: use a local disk" if store.dialect.name == "sqlite" else todo)
    if abs(health.ahead) > CLOCK_SECONDS:
        way = "ahead of" if health.ahead > 0 else "behind"
        found = f"the store's clock is {abs(health.ahead):.0f} s {way} this machine's"
        yield warn("clock", found, "set both clocks by NTP; leases and cooldowns go by the store's alone")
    else:
        yield ok("clock", "the store's agrees with this machine's")


def _contents(store: "Store") -> Iterator[Check]:
    from gateway.store.health import overview

    tenants = overview(store)
    if not tenants:
        yield warn("tenants", "there is none", "run `gateway init`")
    for name, mailboxes, operators in tenants:
        found = f"{mailboxes} mailbox(es), {operators} operator key(s)"
        if mailboxes and operators:
            yield ok(f"tenant {name}", found)
        else:
            yield warn(f"tenant {name}", found, f"run `gateway init --tenant {name}`")


def profile_check() -> Check:
    """The profile: can it be read, by its owner alone?"""
    where = str(profile.place())
    try:
        mine = profile.read()
    except ValueError as error:
        return broken("profile", str(error), "repair or remove it")
    if mine is None:
        return warn(
            "profile", f"there is none at {where}", "run `gateway init`, or give --url and --key to each command"
        )
    if profile.shared():
        return warn("profile", f"others may read {where}", f"chmod 600 {where}")
    return ok("profile", f"{where}, for {mine.url}")


def door_checks(settings: "Settings") -> Iterator[Check]:
    """The HTTP door: does it listen where others can reach it, and is a gateway up there now?"""
    from gateway.cli.setup import url_of
    from gateway.settings import split_bind

    if not settings.http_bind:
        yield ok("http door", "off: HTTP_BIND is empty")
        return
    host, port = split_bind(settings.http_bind)
    if host not in LOOPBACK:
        found = f"HTTP_BIND {settings.http_bind} is open to other machines, without TLS"
        yield warn("http door", found, "put a proxy with TLS in front of it, and set ALLOWED_HOSTS")
    if port == 0:
        yield warn("gateway", "HTTP_BIND takes any free port", "see the log of `gateway serve` for the port")
    else:
        yield _answering(url_of(settings))


def _answering(url: str) -> Check:
    from gateway.client import Client, GatewayError, Unreachable
    from gateway.client.call import Call, plain
    from gateway.client.where import Place

    try:
        with Client(Place(url, ""), timeout=READY_SECONDS, retries=0) as client:
            client.answer(Call("GET", "/readyz", plain))
    except Unreachable:
        return warn("gateway", f"none answers at {url}", "run `gateway serve`")
    except GatewayError as error:
        return broken("gateway", f"{url}/readyz answers {error.status}", "see the log of `gateway serve`")
    return ok("gateway", f"ready at {url}")


def tls_check(settings: "Settings") -> Check:
    """The files of the SMTP doors' certificate, where they are set."""
    if not settings.tls_cert and not settings.tls_key:
        return ok("tls files", "none set; only the SMTP doors need them")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.tls_cert, settings.tls_key or None)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return broken(
            "tls files", f"TLS_CERT and TLS_KEY cannot be used: {why}", "set both to files in PEM that belong together"
        )
    return ok("tls files", settings.tls_cert)
