"""The smarthost's URL, and how a connection is opened: what must be there before a password or a mail is said."""

import pytest

from gateway.relay.place import ehlo_name, is_loopback, read
from gateway.relay.smarthost import Smarthost, Unreachable
from gateway.relay.wire import Offers
from gateway.sink import Sink
from tests.relay.ends import SCHEMES, ends
from tests.smtp import FIXTURES, ca_file, server_tls

SECRET = "s3cret"


def smarthost(sink: Sink, tmp_path, scheme: str = "smtp", host: str = "127.0.0.1", login: str = "", query: str = ""):
    url = f"{scheme}://{login}{host}:{sink.port}{query}"
    return Smarthost.parse(url, ca_file(tmp_path), hostname="gw.example.com", connect_timeout=5, command_timeout=5)


@pytest.mark.parametrize(
    ("url", "host", "port", "tls"),
    [
        ("smtp://127.0.0.1:2525", "127.0.0.1", 2525, "off"),
        ("smtp://localhost", "localhost", 25, "off"),
        ("smtp://[::1]:2525/", "::1", 2525, "off"),
        ("smtp://relay.example.com", "relay.example.com", 25, "starttls"),
        ("smtp://relay.example.com:2525?tls=off", "relay.example.com", 2525, "off"),
        ("smtp+starttls://Relay.Example.com", "relay.example.com", 587, "starttls"),
        ("smtp+starttls://127.0.0.1", "127.0.0.1", 587, "starttls"),
        ("smtps://relay.example.com.", "relay.example.com", 465, "implicit"),
        ("smtps://bücher.example.com", "xn--bcher-kva.example.com", 465, "implicit"),
        ("smtp://agent:s3cret@127.0.0.1", "127.0.0.1", 25, "starttls"),
        ("smtp://agent:s3cret@127.0.0.1?tls=off", "127.0.0.1", 25, "off"),
    ],
)
def test_a_url_says_where_and_how(url, host, port, tls):
    place = read(url)

    assert (place.host, place.port, place.tls) == (host, port, tls)


def test_user_and_password_are_percent_decoded():
    place = read("smtps://agent%40example.com:a%2Fb%3Ac%40d%23%C3%BC@relay.example.com")

    assert (place.username, place.password) == ("agent@example.com", "a/b:c@d#ü")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "relay.example.com",
        "http://relay.example.com",
        "smtp://",
        "smtp:///",
        "smtp://:25",
        "smtp://relay.example.com:0",
        "smtp://relay.example.com:70000",
        "smtp://relay.example.com/path",
        "smtp://relay.example.com#part",
        "smtp://relay.example.com?tls=on",
        "smtp://relay.example.com?tls=off&tls=off&x=1",
        "smtp://relay.example.com?starttls",
        "smtps://relay.example.com?tls=off",
        "smtp+starttls://127.0.0.1?tls=off",
        f"smtps://agent:{SECRET}@",
        f"smtps://agent:{SECRET}/x@relay.example.com",
        f"smtps://agent:{SECRET}#x@relay.example.com",
        f"smtps://agent:{SECRET}?x@relay.example.com",
        f"smtps://agent:{SECRET}[x@relay.example.com",
        f"smtps://agent:{SECRET}℀x@relay.example.com",
        f"smtps://agent:{SECRET}%00@relay.example.com",
        f"smtps://agent:{SECRET}%0D%0A@relay.example.com",
        f"smtps://agent:{SECRET}%FF@relay.example.com",
        f"smtps://:{SECRET}@relay.example.com",
        "smtps://agent@relay.example.com",
        "smtps://agent:@relay.example.com",
        f"smtp://agent:{SECRET}@relay.example.com?tls=off",
        f"smtp://agent:{SECRET}@relay.example.com\r\nX: y",
        "smtp://relay.example.com\r\nX: y",
        "smtp://relay.example.com\tx",
        "smtp://relay example.com",
        "smtp://-relay.example.com",
        "smtp://relay..example.com",
        "smtp://" + "a." * 130 + "example.com",
        "smtp://xn--\N{SNOWMAN}.example.com",
    ],
)
def test_a_url_that_is_not_clear_stops_the_start_with_one_line_and_no_password(url):
    with pytest.raises(ValueError, match=r"\w") as caught:
        Smarthost.parse(url)

    text = str(caught.value)
    assert text.isprintable()
    assert SECRET not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gw.example.com", "gw.example.com"),
        ("bücher.example.com", "xn--bcher-kva.example.com"),
        ("my_host", "my_host"),
        ("192.0.2.1", "[192.0.2.1]"),
        ("[192.0.2.1]", "[192.0.2.1]"),
        ("2001:db8::1", "[IPv6:2001:db8::1]"),
        ("[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"),
    ],
)
def test_the_name_in_ehlo_is_a_name_or_an_address_literal(given, said):
    assert ehlo_name(given) == said


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "gw.example.com\r\nMAIL FROM:<mallory@example.net>",
        "gw.example.com x",
        "gw.example.com\n",
        "gw\0.example.com",
        "gw..example.com",
        "[gw.example.com]",
        "[1.2.3]",
        "a" * 64,
        "gw.example.com ",
    ],
)
def test_a_name_that_could_say_a_command_stops_the_start_with_one_line(name):
    with pytest.raises(ValueError, match="name of a host|address literal") as caught:
        Smarthost.parse("smtp://127.0.0.1", hostname=name)

    assert str(caught.value).isprintable()


def test_a_file_of_certificates_that_is_not_there_or_holds_none_stops_the_start(tmp_path):
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("missing.pem", "empty.pem"):
        with pytest.raises(ValueError, match="certificates") as caught:
            Smarthost.parse("smtps://relay.example.com", tmp_path / name)

        assert str(caught.value).isprintable()


def test_no_text_made_from_a_smarthost_shows_the_password():
    host = Smarthost.parse(f"smtps://agent:{SECRET}@relay.example.com")

    assert str(host) == "smtps://relay.example.com:465"
    for text in (repr(host), str(host), repr(host.place), f"{host.place}"):
        assert SECRET not in text


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),  # noqa: S104 - nothing is bound to it
        ("192.0.2.1", False),
        ("localhost.example.com", False),
    ],
)
def test_the_loopback_is_known_by_its_names(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("way", list(SCHEMES))
async def test_a_connection_knows_what_the_smarthost_offers(tmp_path, way):
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
async def test_a_smarthost_that_offers_less_is_taken_at_its_word(tmp_path, script, offers):
    async with ends(tmp_path, script=script) as both:
        wire = await both.pool.acquire()
        both.pool.release(wire)

    assert wire.offers == offers


@pytest.mark.parametrize("way", ["starttls", "implicit"])
async def test_a_login_is_said_under_tls(tmp_path, way):
    async with ends(tmp_path, way, auth=("agent", "s3cret")) as both:
        both.pool.release(await both.pool.acquire())

    assert any(command.startswith("AUTH ") for command in both.sink.commands)
    assert both.pool.smarthost.place.password == "s3cret"


@pytest.mark.parametrize("scheme", ["smtp", "smtp+starttls"])
async def test_no_password_is_said_where_starttls_was_taken_away(tmp_path, scheme):
    async with Sink(script=FIXTURES / "no-starttls.txt") as sink:
        host = smarthost(sink, tmp_path, scheme, login=f"agent:{SECRET}@")
        with pytest.raises(Unreachable, match="TLS is required") as caught:
            await host.connect()

    assert caught.value.counts
    assert not [command for command in sink.commands if command.startswith(("AUTH", "MAIL"))]


async def test_a_password_goes_in_clear_only_to_the_loopback_and_only_where_the_url_says_so(tmp_path):
    async with Sink(script="# well behaved", auth=("agent", SECRET)) as sink:
        wire = await smarthost(sink, tmp_path, login=f"agent:{SECRET}@", query="?tls=off").connect()
        wire.abort()

    assert [command[:10] for command in sink.commands if command.startswith("AUTH")] == ["AUTH PLAIN"]


async def test_a_wrong_password_is_no_fault_of_a_mail(tmp_path):
    async with Sink(script="# well behaved", tls=server_tls(), auth=("agent", "other")) as sink:
        with pytest.raises(Unreachable, match="535 to AUTH") as caught:
            await smarthost(sink, tmp_path, "smtp+starttls", login=f"agent:{SECRET}@").connect()

    assert caught.value.reply is not None
    assert (caught.value.reply.code, caught.value.reply.enhanced) == (535, "5.7.8")


async def test_a_challenge_that_is_none_is_no_fault_of_a_mail(tmp_path):
    script = 'EHLO 2+ "250-up\\r\\n250 AUTH CRAM-MD5"\nAUTH "334 !"'
    async with Sink(script=script, tls=server_tls()) as sink:
        with pytest.raises(Unreachable, match="AUTH"):
            await smarthost(sink, tmp_path, "smtp+starttls", login=f"agent:{SECRET}@").connect()


@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
@pytest.mark.parametrize("fault", ["a name that is not in it", "an authority that is not ours"])
async def test_certificates_and_names_are_checked(tmp_path, scheme, fault):
    context = server_tls("relay.example.net") if fault.startswith("a name") else server_tls(by="another")
    async with Sink(script="# well behaved", tls=context, implicit=scheme == "smtps") as sink:
        with pytest.raises(Unreachable, match="certificate of smtp.* is not trusted"):
            await smarthost(sink, tmp_path, scheme).connect()

    assert not [command for command in sink.commands if command.startswith(("MAIL", "AUTH"))]


async def test_a_name_may_be_checked_as_well_as_an_address(tmp_path):
    async with Sink(script="# well behaved", tls=server_tls("localhost"), implicit=True) as sink:
        wire = await smarthost(sink, tmp_path, "smtps", "localhost").connect()
        wire.abort()


async def test_what_was_said_in_clear_before_tls_began_counts_for_nothing(tmp_path):
    script = 'STARTTLS "220 go on\\r\\n250-mallory\\r\\n250 SIZE 1"'
    async with Sink(script=script, tls=server_tls()) as sink:
        wire = await smarthost(sink, tmp_path, "smtp+starttls").connect()
        wire.abort()

    assert wire.offers.size == sink.size


async def test_a_reply_too_many_before_mail_is_seen(tmp_path):
    async with Sink(script='EHLO "250-up\\r\\n250 8BITMIME\\r\\n250 2.1.0 early"') as sink:
        with pytest.raises(Unreachable, match="before it was asked"):
            await smarthost(sink, tmp_path).connect()


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_connection_that_fails_is_told_with_its_stage(tmp_path, scheme):
    async with Sink(script="BANNER HANG") as sink:
        url = f"{scheme}://127.0.0.1:{sink.port}"
        host = Smarthost.parse(url, ca_file(tmp_path), connect_timeout=0.1, command_timeout=0.1)
        with pytest.raises(Unreachable, match=r"did not answer to greeting within 0.1 s|no connection to smtps"):
            await host.connect()
        await sink.until(lambda: sink.connected == 0)


async def test_tls_where_none_is_spoken_is_told(tmp_path):
    async with Sink(script="# well behaved") as sink:
        with pytest.raises(Unreachable, match="no connection to smtps"):
            await smarthost(sink, tmp_path, "smtps").connect()


async def test_control_characters_of_a_reply_reach_no_log(tmp_path):
    async with Sink(script='BANNER "554 5.7.1 \\u001b[31mno\\u0000 \\u2028x"') as sink:
        with pytest.raises(Unreachable) as caught:
            await smarthost(sink, tmp_path).connect()

    assert caught.value.reply is not None
    assert caught.value.reply.text == "\ufffd[31mno\ufffd \ufffdx"
