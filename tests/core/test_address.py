"""What is an address, what is not, and who is one person."""

import email_validator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.address import AddressError, domain_of, parse

SPECIAL = frozenset({"test", "local", "localhost"})


def refused(text: str, *, special_use: frozenset[str] = frozenset(), display: bool = False) -> str:
    with pytest.raises(AddressError) as caught:
        parse(text, special_use=special_use, display=display)
    return caught.value.why


def test_an_address_is_kept_as_given_but_for_the_form_of_its_domain() -> None:
    address = parse("Pat.Roe+News@EXAMPLE.Com")

    assert (address.local, address.domain, address.display) == ("Pat.Roe+News", "example.com", "")
    assert address.spec == "Pat.Roe+News@example.com"
    assert address.key == "pat.roe+news@example.com"
    assert not address.needs_smtputf8


@pytest.mark.parametrize("local", ["postmaster", "INFO", "Sales"])
def test_even_a_role_name_keeps_its_case_in_the_envelope(local: str) -> None:
    assert parse(f"{local}@bücher.example.com").local == local


@pytest.mark.parametrize(
    "text",
    [
        "pat@bücher.example.com",
        "pat@BÜCHER.example.com",
        "pat@bu\u0308cher.example.com",
        "pat@xn--bcher-kva.example.com",
        "PAT@XN--BCHER-KVA.Example.Com",
    ],
)
def test_all_forms_of_an_international_domain_are_one_domain(text: str) -> None:
    address = parse(text)

    assert address.domain == "xn--bcher-kva.example.com"
    assert address.key == "pat@xn--bcher-kva.example.com"


def test_a_local_part_outside_ascii_needs_smtputf8_and_is_known_in_any_form() -> None:
    composed, decomposed = parse("J\u00f6rg@example.com"), parse("jo\u0308rg@example.com")

    assert composed.needs_smtputf8
    assert composed.local == "J\u00f6rg"
    assert composed.key == decomposed.key == "j\u00f6rg@example.com"


def test_a_domain_outside_ascii_alone_needs_no_smtputf8() -> None:
    assert not parse("pat@bücher.example.com").needs_smtputf8


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pat",
        "nodomain",
        "@example.com",
        "pat@",
        " pat@example.com",
        "pat@example.com ",
        "pat@example.com\n",
        "pat@example.com\r\nBcc: mallory@example.net",
        "pat\x00@example.com",
        "pat@exa\x00mple.com",
        "pat@example.com\rBcc",
        "pat\ud83d@example.com",
        "pat\x85@example.com",
        "pat @example.com",
        "pat@example .com",
        "a@b@example.com",
        "<>",
        "<pat@example.com>",
        "Pat <pat@example.com>",
        "@route.example.com:pat@example.com",
        "@route.example.com pat@example.com",
        '"pat"@example.com',
        '"mallory@example.net x"@corp.example.com',
        "pat(comment)@example.com",
        "pat@example.com (comment)",
        "pat@[192.0.2.1]",
        "pat@[IPv6:2001:db8::1]",
        "pat@192.0.2.1",
        "pat@example.com, mallory@example.net",
        "pat@example.com;mallory@example.net",
        ".pat@example.com",
        "pat.@example.com",
        "p..at@example.com",
        "pat@.example.com",
        "pat@example.com.",
        "pat@example..com",
        "pat@-example.com",
        "pat@ex_ample.com",
        "pat@example",
        "pat@xn--a.example.com",
        "pat@ab--cd.example.com",
        "pat@example\uff0ecom",  # a full-width dot: UTS 46 would repair it
        "pat@\uff45xample.com",  # a full-width letter: the same
        "pat@ex\u00adample.com",  # a soft hyphen: the same
        "pat@example\u3002com",
        "\uff20example.com",
        "\u0301pat@example.com",
        "pat\u200bb@example.com",
        "=?utf-8?q?=0D=0A?=@example.com",
        "=?utf-8?q?p?=@example.com",
    ],
)
def test_what_is_no_plain_address_is_refused_never_repaired(text: str) -> None:
    why = refused(text)

    assert "pat" not in why
    assert "mallory" not in why


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a" * 64 + "@example.com", True),
        ("a" * 65 + "@example.com", False),
        ("ü" * 32 + "@example.com", True),
        ("ü" * 33 + "@example.com", False),
        ("a" * 64 + "@" + ".".join(["b" * 61] * 3) + ".com", True),
        ("a" * 64 + "@" + ".".join(["b" * 62] * 3) + ".com", False),
        ("a@" + "b" * 63 + ".com", True),
        ("a@" + "b" * 64 + ".com", False),
        ("ü" * 32 + "@" + ".".join(["b" * 61] * 3) + ".com", True),
        ("ü" * 32 + "@" + ".".join(["b" * 62] * 3) + ".com", False),
        ("a" * 1_000_000 + "@example.com", False),
    ],
)
def test_the_lengths_of_rfc_5321_hold_in_octets(text: str, fits: bool) -> None:
    if fits:
        assert parse(text).spec == text
    else:
        refused(text)


@pytest.mark.parametrize("domain", ["team.test", "mailpit.local", "localhost", "mail.localhost", "test", "TEAM.Test"])
def test_special_use_domains_come_in_by_name_only(domain: str) -> None:
    assert parse(f"pat@{domain}", special_use=SPECIAL).key == f"pat@{domain.lower()}"
    assert "GATEWAY_ALLOW_SPECIAL_USE" in refused(f"pat@{domain}")


@pytest.mark.parametrize("text", ["pat@nowhere.invalid", "pat@x.onion", "pat@1.in-addr.arpa"])
def test_a_special_use_domain_that_is_not_named_stays_out(text: str) -> None:
    assert "GATEWAY_ALLOW_SPECIAL_USE" in refused(text, special_use=SPECIAL)


@pytest.mark.parametrize("text", ["pat@-x.test", "pat@x..test", "pat@x.test.", "p at@x.test", "pat@ex_ample.test"])
def test_a_special_use_domain_is_judged_like_any_other(text: str) -> None:
    refused(text, special_use=SPECIAL)


def test_letting_special_use_in_leaves_the_library_as_it_was() -> None:
    before = list(email_validator.SPECIAL_USE_DOMAIN_NAMES)

    parse("pat@bücher.test", special_use=SPECIAL)

    assert before == email_validator.SPECIAL_USE_DOMAIN_NAMES
    assert "GATEWAY_ALLOW_SPECIAL_USE" in refused("pat@bücher.test")


@pytest.mark.parametrize(
    ("text", "display", "spec"),
    [
        ("pat@example.com", "", "pat@example.com"),
        ("<pat@example.com>", "", "pat@example.com"),
        ("Pat <pat@example.com>", "Pat", "pat@example.com"),
        ("Pat   <pat@example.com>", "Pat", "pat@example.com"),
        ("Q. Team <pat@example.com>", "Q. Team", "pat@example.com"),
        ("E\u0301quipe <pat@example.com>", "Équipe", "pat@example.com"),
        ('"Agent Équipe, Ventes" <agent-a@gw.example.com>', "Agent Équipe, Ventes", "agent-a@gw.example.com"),
        ('"mallory@example.net" <pat@corp.example.com>', "mallory@example.net", "pat@corp.example.com"),
        (r'"a \"b\" \\ c" <pat@example.com>', r'a "b" \ c', "pat@example.com"),
        ('" x " <pat@example.com>', " x ", "pat@example.com"),
        ("=?utf-8?q?caf=C3=A9?= <pat@example.com>", "=?utf-8?q?caf=C3=A9?=", "pat@example.com"),
    ],
)
def test_a_display_name_is_kept_beside_the_address(text: str, display: str, spec: str) -> None:
    address = parse(text, display=True)

    assert (address.display, address.spec, address.key) == (display, spec, spec)


@pytest.mark.parametrize(
    "text",
    [
        '"Agent\r\nBcc: mallory@example.net" <agent-a@gw.example.com>',
        "Agent\nX <pat@example.com>",
        "=?utf-8?q?x=0D=0ABcc:_e?= <pat@example.com>",
        '"=?utf-8?q?x=00?=" <pat@example.com>',
        "A\x00B <pat@example.com>",
        "A\u2028B <pat@example.com>",
        "A\ud800B <pat@example.com>",
        "A, B <pat@example.com>",
        "A (B) <pat@example.com>",
        "mallory@example.net <pat@example.com>",
        "Pat <pat@example.com> x",
        "Pat <pat@example.com> ",
        " Pat <pat@example.com>",
        " <pat@example.com>",
        "Pat <pat@example.com>, Q <q@example.com>",
        "Pat < pat@example.com>",
        "Pat <pat@example.com",
        "Pat <<pat@example.com>>",
        "<>",
        "Pat <>",
        '"Pat <pat@example.com>',
        "Pat <@route.example.com:pat@example.com>",
        "pat@example.com, mallory@example.net",
        "x" * 600 + " <pat@example.com>",
    ],
)
def test_a_display_form_that_could_be_read_in_two_ways_is_refused(text: str) -> None:
    refused(text, display=True)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Example.COM", "example.com"),
        ("BÜCHER.example.com", "xn--bcher-kva.example.com"),
        ("Localhost", "localhost"),
        ("mail.test", "mail.test"),
    ],
)
def test_a_domain_may_be_named_alone(text: str, domain: str) -> None:
    assert domain_of(text) == domain


@pytest.mark.parametrize("text", ["", "a b", "@example.com", "x@example.com", "example.com.", "[192.0.2.1]", "b" * 300])
def test_what_is_no_domain_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        domain_of(text)


@given(st.text(st.sampled_from('abAB019.-_+@ "<>,é\n'), max_size=20), st.sampled_from(["", ".com", "@example.com"]))
def test_the_short_pattern_agrees_with_the_library(start: str, end: str) -> None:
    text = start + end
    try:
        address = parse(text)
    except AddressError:
        return

    found = email_validator.validate_email(text, check_deliverability=False)
    assert address.domain == found.ascii_domain
    assert address.local.lower() == found.local_part.lower()
