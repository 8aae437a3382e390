"""The smarthost's URL and the name in EHLO: what is clear is taken, all else stops the start with one line."""

from pathlib import Path

import pytest

from gateway.relay.place import ehlo_name, is_loopback, read
from gateway.relay.smarthost import Smarthost

SECRET = "s3cret"


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
def test_a_url_says_where_and_how(url: str, host: str, port: int, tls: str) -> None:
    place = read(url)

    assert (place.host, place.port, place.tls) == (host, port, tls)


def test_user_and_password_are_percent_decoded() -> None:
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
def test_a_url_that_is_not_clear_stops_the_start_with_one_line_and_no_password(url: str) -> None:
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
def test_the_name_in_ehlo_is_a_name_or_an_address_literal(given: str, said: str) -> None:
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
def test_a_name_that_could_say_a_command_stops_the_start_with_one_line(name: str) -> None:
    with pytest.raises(ValueError, match=r"name of a host|address literal") as caught:
        Smarthost.parse("smtp://127.0.0.1", hostname=name)

    assert str(caught.value).isprintable()


def test_a_file_of_certificates_that_is_not_there_or_holds_none_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("missing.pem", "empty.pem"):
        with pytest.raises(ValueError, match="certificates") as caught:
            Smarthost.parse("smtps://relay.example.com", tmp_path / name)

        assert str(caught.value).isprintable()


def test_no_text_made_from_a_smarthost_shows_the_password() -> None:
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
def test_the_loopback_is_known_by_its_names(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
