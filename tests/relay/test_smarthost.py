"""How a connection is opened: what must be there before a password or a mail is said."""

from pathlib import Path

import pytest

from gateway.relay.smarthost import Smarthost, Unreachable
from gateway.relay.wire import Offers
from gateway.sink import Sink
from tests.relay.ends import SCHEMES, ends
from tests.smtp import FIXTURES, ca_file, server_tls

SECRET = "s3cret"


def smarthost(
    sink: Sink, folder: Path, scheme: str = "smtp", host: str = "127.0.0.1", login: str = "", query: str = ""
) -> Smarthost:
    url = f"{scheme}://{login}{host}:{sink.port}{query}"
    return Smarthost.parse(url, ca_file(folder), hostname="gw.example.com", connect_timeout=5, command_timeout=5)


@pytest.mark.parametrize("way", list(SCHEMES))
async def test_a_connection_knows_what_the_smarthost_offers(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way) as both:
        wire = await both.pool.acquire()
        both.pool.release(wire)

    assert wire.offers == Offers(pipelining=True, size=33_554_432, eight_bit=True, smtputf8=True)
    assert "EHLO gw.example.com" in both.sink.commands


@pytest.mark.parametrize(
    ("script", "offers"),
    [
        (FIXTURES / "plain.txt", Offers()),
        ('EHLO "250-up\\r\\n250-SIZE\\r\\n250 8BITMIME"', Offers(size=0, eight_bit=True)),
        ('EHLO "250-up\\r\\n250-SIZE many\\r\\n250 PIPELINING"', Offers(size=0, pipelining=True)),
        ('EHLO 1 "502 5.5.1 only HELO here"\nEHLO "250 up"', Offers()),
    ],
)
async def test_a_smarthost_that_offers_less_is_taken_at_its_word(
    tmp_path: Path, script: str | Path | None, offers: Offers
) -> None:
    async with ends(tmp_path, script=script) as both:
        wire = await both.pool.acquire()
        both.pool.release(wire)

    assert wire.offers == offers


@pytest.mark.parametrize("way", ["starttls", "implicit"])
async def test_a_login_is_said_under_tls(tmp_path: Path, way: str) -> None:
    async with ends(tmp_path, way, auth=("agent", "s3cret")) as both:
        both.pool.release(await both.pool.acquire())

    assert any(command.startswith("AUTH ") for command in both.sink.commands)
    assert both.pool.smarthost.place.password == "s3cret"


@pytest.mark.parametrize("scheme", ["smtp", "smtp+starttls"])
async def test_no_password_is_said_where_starttls_was_taken_away(tmp_path: Path, scheme: str) -> None:
    async with Sink(script=FIXTURES / "no-starttls.txt") as sink:
        host = smarthost(sink, tmp_path, scheme, login=f"agent:{SECRET}@")
        with pytest.raises(Unreachable, match="TLS is required") as caught:
            await host.connect()

    assert caught.value.counts
    assert not [command for command in sink.commands if command.startswith(("AUTH", "MAIL"))]


async def test_a_password_goes_in_clear_only_to_the_loopback_and_only_where_the_url_says_so(tmp_path: Path) -> None:
    async with Sink(script="# well behaved", auth=("agent", SECRET)) as sink:
        wire = await smarthost(sink, tmp_path, login=f"agent:{SECRET}@", query="?tls=off").connect()
        wire.abort()

    assert [command[:10] for command in sink.commands if command.startswith("AUTH")] == ["AUTH PLAIN"]


async def test_a_wrong_password_is_no_fault_of_a_mail(tmp_path: Path) -> None:
    async with Sink(script="# well behaved", tls=server_tls(), auth=("agent", "other")) as sink:
        with pytest.raises(Unreachable, match="535 to AUTH") as caught:
            await smarthost(sink, tmp_path, "smtp+starttls", login=f"agent:{SECRET}@").connect()

    assert caught.value.reply is not None
    assert (caught.value.reply.code, caught.value.reply.enhanced) == (535, "5.7.8")


async def test_a_challenge_that_is_none_is_no_fault_of_a_mail(tmp_path: Path) -> None:
    script = 'EHLO 2+ "250-up\\r\\n250 AUTH CRAM-MD5"\nAUTH "334 !"'
    async with Sink(script=script, tls=server_tls()) as sink:
        with pytest.raises(Unreachable, match="AUTH"):
            await smarthost(sink, tmp_path, "smtp+starttls", login=f"agent:{SECRET}@").connect()


@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
@pytest.mark.parametrize("fault", ["a name that is not in it", "an authority that is not ours"])
async def test_certificates_and_names_are_checked(tmp_path: Path, scheme: str, fault: str) -> None:
    context = server_tls("relay.example.net") if fault.startswith("a name") else server_tls(by="another")
    async with Sink(script="# well behaved", tls=context, implicit=scheme == "smtps") as sink:
        with pytest.raises(Unreachable, match=r"certificate of smtp.* is not trusted"):
            await smarthost(sink, tmp_path, scheme).connect()

    assert not [command for command in sink.commands if command.startswith(("MAIL", "AUTH"))]


async def test_a_name_may_be_checked_as_well_as_an_address(tmp_path: Path) -> None:
    async with Sink(script="# well behaved", tls=server_tls("localhost"), implicit=True) as sink:
        wire = await smarthost(sink, tmp_path, "smtps", "localhost").connect()
        wire.abort()


async def test_what_was_said_in_clear_before_tls_began_counts_for_nothing(tmp_path: Path) -> None:
    script = 'STARTTLS "220 go on\\r\\n250-mallory\\r\\n250 SIZE 1"'
    async with Sink(script=script, tls=server_tls()) as sink:
        wire = await smarthost(sink, tmp_path, "smtp+starttls").connect()
        wire.abort()

    assert wire.offers.size == sink.size


async def test_a_reply_too_many_before_mail_is_seen(tmp_path: Path) -> None:
    async with Sink(script='EHLO "250-up\\r\\n250 8BITMIME\\r\\n250 2.1.0 early"') as sink:
        with pytest.raises(Unreachable, match="before it was asked"):
            await smarthost(sink, tmp_path).connect()


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_connection_that_fails_is_told_with_its_stage(tmp_path: Path, scheme: str) -> None:
    async with Sink(script="BANNER HANG") as sink:
        url = f"{scheme}://127.0.0.1:{sink.port}"
        host = Smarthost.parse(url, ca_file(tmp_path), connect_timeout=0.1, command_timeout=0.1)
        with pytest.raises(Unreachable, match=r"did not answer to greeting within 0.1 s|no connection to smtps"):
            await host.connect()
        await sink.until(lambda: sink.connected == 0)


async def test_tls_where_none_is_spoken_is_told(tmp_path: Path) -> None:
    async with Sink(script="# well behaved") as sink:
        with pytest.raises(Unreachable, match="no connection to smtps"):
            await smarthost(sink, tmp_path, "smtps").connect()


async def test_control_characters_of_a_reply_reach_no_log(tmp_path: Path) -> None:
    async with Sink(script='BANNER "554 5.7.1 \\u001b[31mno\\u0000 \\u2028x"') as sink:
        with pytest.raises(Unreachable) as caught:
            await smarthost(sink, tmp_path).connect()

    assert caught.value.reply is not None
    assert caught.value.reply.text == "\ufffd[31mno\ufffd \ufffdx"
