"""What `gateway doctor` asks the smarthost: can it be reached as the relay would, and what does it offer?

It greets, upgrades and logs in exactly as the relay does, and hangs up before MAIL: nothing is sent.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.cli.checks import Check, broken, ok, warn

if TYPE_CHECKING:
    from gateway.relay.smarthost import Smarthost
    from gateway.settings import Settings

PATIENCE_SECONDS = 10.0
"""The longest that the doctor waits for a step, whatever the settings allow the relay."""

Offered = dict[str, str]


def smarthost_checks(settings: "Settings") -> Iterator[Check]:
    """Reach the smarthost and read its EHLO."""
    from dataclasses import replace

    from gateway.app import smarthost_of
    from gateway.relay.smarthost import Unreachable

    try:
        host = smarthost_of(settings)
    except ValueError as error:
        yield broken("smarthost", str(error), "correct SMARTHOST or SMARTHOST_CA")
        return
    connect, command = (min(s, PATIENCE_SECONDS) for s in (host.connect_timeout, host.command_timeout))
    host = replace(host, connect_timeout=connect, command_timeout=command)
    try:
        offered = asyncio.run(_ask(host))
    except Unreachable as error:
        yield broken("smarthost", error.why, _cure(host, error.why))
        return
    yield ok("smarthost", f"{host} answers, ready for mail")
    yield _starttls(host, offered)
    yield _auth(host, offered)
    yield _size(offered, settings.max_message_bytes)
    yield _feature(offered, "8BITMIME", "8-bit parts are re-encoded on the way out")
    yield _feature(offered, "SMTPUTF8", "addresses with a non-ASCII part before the @ are refused")
    yield _feature(offered, "PIPELINING", "each mail takes more round trips")


def _cure(host: "Smarthost", why: str) -> str:
    if "WRONG_VERSION" in why:
        return "this port does not begin with TLS: use smtp+starttls://"
    if "certificate" in why:
        return "set SMARTHOST_CA to the certificates that it is to be checked against, or correct the host's name"
    if "STARTTLS" in why:
        return "use smtps:// if it speaks TLS from the start; ?tls=off allows plain text, without a password"
    if "AUTH" in why:
        return "check user and password in SMARTHOST"
    if host.place.host in ("127.0.0.1", "::1", "localhost"):
        return "start it; for trying things out, `gateway sink`"
    return "check SMARTHOST and the way there; mail waits and is tried again meanwhile"


async def _ask(host: "Smarthost") -> Offered:
    """The extensions of the EHLO that counts, with STARTTLS as offered before TLS; raises Unreachable."""
    wire = await host.connect()
    wire.quit()
    offered = await _look(host)
    offered |= {"PIPELINING": ""} if wire.offers.pipelining else {}
    offered |= {"8BITMIME": ""} if wire.offers.eight_bit else {}
    offered |= {"SMTPUTF8": ""} if wire.offers.smtputf8 else {}
    if wire.offers.size is not None:
        offered["SIZE"] = str(wire.offers.size)
    return offered


async def _look(host: "Smarthost") -> Offered:
    """STARTTLS and AUTH, which the relay's line does not keep: one more greeting, read and left."""
    import aiosmtplib

    place = host.place
    client = aiosmtplib.SMTP(
        hostname=place.host,
        port=place.port,
        local_hostname=host.hostname,
        timeout=host.command_timeout,
        use_tls=place.tls == "implicit",
        start_tls=False,
        tls_context=host.context,
    )
    offered: Offered = {}
    try:
        await client.connect(timeout=host.connect_timeout)
        await client.ehlo()
        if client.supports_extension("starttls"):
            offered["STARTTLS"] = ""
            if place.tls == "starttls":
                await client.starttls()
                await client.ehlo()
        if client.supported_auth_methods:
            offered["AUTH"] = " ".join(sorted(method.upper() for method in client.supported_auth_methods))
    except (aiosmtplib.SMTPException, OSError):
        pass  # it knows HELO alone, or has had enough of us: then it offers nothing
    finally:
        client.close()
    return offered


def _starttls(host: "Smarthost", offered: Offered) -> Check:
    tls = host.place.tls
    if tls == "implicit":
        return ok("STARTTLS", "not needed: TLS from the start, its certificate is good")
    if tls == "starttls":
        return ok("STARTTLS", "offered and used, its certificate is good")
    said = "offered" if "STARTTLS" in offered else "not offered"
    if host.place.host in ("127.0.0.1", "::1", "localhost"):
        return ok("STARTTLS", f"{said}; not used to the loopback")
    return warn("STARTTLS", f"{said}; ?tls=off: mail goes in clear", "use smtp+starttls:// if it offers TLS")


def _auth(host: "Smarthost", offered: Offered) -> Check:
    methods = offered.get("AUTH", "")
    if host.place.username:
        return ok("AUTH", f"logged in as {host.place.username}")
    if methods:
        return ok("AUTH", f"offered ({methods}), not used: SMARTHOST has no user")
    return ok("AUTH", "not offered, not used")


def _size(offered: Offered, largest: int) -> Check:
    if "SIZE" not in offered:
        return warn("SIZE", "not offered", "a mail that is too large there is noticed late, after its body")
    limit = int(offered["SIZE"])
    if 0 < limit < largest:
        found = f"{limit} bytes, less than MAX_MESSAGE_BYTES ({largest})"
        return warn("SIZE", found, f"set MAX_MESSAGE_BYTES to {limit}, so that larger mail is refused at once")
    return ok("SIZE", f"{limit} bytes" if limit else "no limit")


def _feature(offered: Offered, name: str, without: str) -> Check:
    return ok(name, "offered") if name in offered else warn(name, "not offered", without)
