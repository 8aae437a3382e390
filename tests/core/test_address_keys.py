"""Who is one person: the key of an address, the providers' rules and a tenant's own."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.address import AddressError, KeyRules, domain_of, parse

ATOMS = st.text("abcXYZ019._+-!#'", min_size=1, max_size=12)
WIDE_ATOMS = st.text(st.characters(categories=("Ll", "Lu", "Mn", "Nd")), min_size=1, max_size=12)
DOMAINS = st.sampled_from(
    ["example.com", "Example.COM", "gmail.com", "googlemail.com", "bücher.example.com", "xn--bcher-kva.example.org"]
)


@pytest.mark.parametrize("other", ["janeroe@gmail.com", "JANE.ROE@GMAIL.COM", "j.a.n.e.roe+x+y@googlemail.com"])
def test_spellings_of_one_inbox_are_one_person(other: str) -> None:
    assert parse(other).key == parse("jane.roe+news@gmail.com").key == "janeroe@gmail.com"


def test_dots_and_plus_tags_stay_where_the_provider_minds_them() -> None:
    keys = {parse(f"{local}@example.com").key for local in ("jane.roe", "janeroe", "jane.roe+a", "jane.roe+b")}

    assert len(keys) == 4


def test_a_name_that_begins_with_a_plus_is_not_cut_to_nothing() -> None:
    assert parse("+x@gmail.com").key == "+x@gmail.com"


def test_a_tenant_adds_aliases_and_provider_rules_in_any_form() -> None:
    rules = KeyRules(
        aliases={"Alias.Example.ORG": "example.org", "bücher.example.com": "alias.example.org"},
        plus_tags=frozenset({"EXAMPLE.org"}),
        dots=frozenset({"bücher.example.com"}),
    )

    assert parse("p.at+x@xn--bcher-kva.example.com", rules=rules).key == "pat@example.org"
    assert parse("p.at+x@alias.example.org", rules=rules).key == "pat@example.org"
    assert parse("p.at@googlemail.com", rules=rules).key == "p.at@gmail.com"
    assert rules == KeyRules(rules.aliases, rules.plus_tags, rules.dots)
    assert len({rules, KeyRules(rules.aliases, rules.plus_tags, rules.dots)}) == 1


def test_a_built_in_alias_cannot_be_turned_elsewhere() -> None:
    assert KeyRules({"googlemail.com": "example.com"}).canonical("googlemail.com") == "gmail.com"


@pytest.mark.parametrize(
    "aliases",
    [
        {"a.example.com": "b.example.com", "b.example.com": "a.example.com"},
        {"a.example.com": "a.example.com"},
        {"a.example.com": "not a domain"},
    ],
)
def test_aliases_that_lead_nowhere_are_refused(aliases: dict[str, str]) -> None:
    with pytest.raises(AddressError):
        KeyRules(aliases)


@given(ATOMS | WIDE_ATOMS, DOMAINS)
def test_a_key_is_its_own_key(local: str, domain: str) -> None:
    rules = KeyRules()

    key = rules.key(local, domain_of(domain))

    assert rules.key(*key.rsplit("@", 1)) == key


@given(WIDE_ATOMS)
def test_spellings_that_unicode_calls_equal_have_one_key(local: str) -> None:
    keys = {KeyRules().key(unicodedata.normalize(form, local), "example.com") for form in ("NFC", "NFD")}

    assert len(keys) == 1


@given(ATOMS, DOMAINS)
def test_case_never_makes_two_people_of_one(local: str, domain: str) -> None:
    try:
        address = parse(f"{local}@{domain}")
    except AddressError:
        return

    assert parse(f"{local.upper()}@{domain.upper()}").key == address.key
    assert parse(address.spec).key == address.key


def test_every_single_letter_has_a_stable_key() -> None:
    rules = KeyRules()
    changing = [char for char in map(chr, range(0x110000)) if char.casefold() != unicodedata.normalize("NFD", char)]
    keys = [rules.key(char, "example.com") for char in changing]

    unstable = [key for key in keys if rules.key(*key.rsplit("@", 1)) != key]

    assert unstable == []
    assert [key for key in keys if not unicodedata.is_normalized("NFC", key)] == []
