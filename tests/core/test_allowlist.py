"""Allow lists: one form for each pattern, and nothing matches that merely looks alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.address import AddressError, KeyRules
from gateway.core.allowlist import allows, covers, pattern, patterns

LABELS = st.sampled_from(["a", "b", "example"])
DOMAINS = st.lists(LABELS, min_size=1, max_size=3).map(lambda labels: ".".join([*labels, "com"]))
KEYS = st.builds(lambda local, domain: f"{local}@{domain}", st.sampled_from(["pat", "sam"]), DOMAINS)
PATTERNS = DOMAINS | DOMAINS.map(lambda domain: f"*.{domain}") | KEYS | st.just("*")
LISTS = st.none() | st.frozensets(PATTERNS, max_size=3)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("*", "*"),
        ("*@*", "*"),
        ("Example.COM", "example.com"),
        ("*@example.com", "example.com"),
        ("*.Example.com", "*.example.com"),
        ("*@*.example.com", "*.example.com"),
        ("B\u00fccher.example.com", "xn--bcher-kva.example.com"),
        ("*.b\u00fccher.example.com", "*.xn--bcher-kva.example.com"),
        ("googlemail.com", "gmail.com"),
        ("First.Last+tag@GoogleMail.com", "firstlast@gmail.com"),
        ("PAT@example.com", "pat@example.com"),
        ("com", "com"),
        ("*.com", "*.com"),
        ("intern.test", "intern.test"),
    ],
)
def test_a_pattern_has_one_form(text: str, form: str) -> None:
    assert pattern(text) == form
    assert pattern(form) == form


NO_PATTERNS = """
@ @example.com pat@ *example.com *.*.com *. a.*.com pat@* ** *@ a@b@example.com example.com. -.com pat@*.example.com
"""


@pytest.mark.parametrize(
    "text", ["", "exa mple.com", " example.com", "x" * 400, "\uff45xample.com", *NO_PATTERNS.split()]
)
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        pattern(text)


def test_a_tenants_aliases_hold_for_patterns_too() -> None:
    rules = KeyRules(aliases={"old.example.com": "new.example.com"})

    assert patterns(["old.example.com", "*.old.example.com"], rules) == {"new.example.com", "*.new.example.com"}


@pytest.mark.parametrize(
    ("allowed", "yes", "no"),
    [
        (None, ["pat@example.com"], []),
        ([], [], ["pat@example.com"]),
        (["*"], ["pat@example.com"], []),
        (["example.com"], ["pat@example.com"], ["pat@sub.example.com", "pat@notexample.com", "pat@example.com.net"]),
        (["*.example.com"], ["pat@a.example.com", "pat@b.a.example.com"], ["pat@example.com", "pat@aexample.com"]),
        (["*.example.com"], [], ["pat@a.example.com.net", "pat@a.notexample.com", "a.example.com@example.net"]),
        (["pat@example.com"], ["pat@example.com"], ["sam@example.com", "xpat@example.com", "pat@a.example.com"]),
    ],
)
def test_a_list_allows_what_it_says(allowed: list[str] | None, yes: list[str], no: list[str]) -> None:
    known = None if allowed is None else frozenset(allowed)

    assert [key for key in [*yes, *no] if allows(known, key)] == yes


@pytest.mark.parametrize(
    ("old", "new", "covered"),
    [
        (None, None, True),
        (None, [], True),
        (["*"], None, True),
        ([], None, False),
        ([], [], True),
        (["example.com"], ["example.com"], True),
        (["example.com"], ["pat@example.com"], True),
        (["example.com"], ["*.example.com"], False),
        (["*.example.com"], ["a.example.com", "*.a.example.com", "pat@b.example.com"], True),
        (["*.example.com"], ["example.com"], False),
        (["*.a.example.com"], ["*.example.com"], False),
        (["example.com"], ["*"], False),
        (["pat@example.com"], ["example.com"], False),
    ],
)
def test_a_narrower_list_is_covered(old: list[str] | None, new: list[str] | None, covered: bool) -> None:
    assert covers(None if old is None else frozenset(old), None if new is None else frozenset(new)) is covered


@given(LISTS, LISTS, KEYS)
def test_a_list_that_is_covered_lets_nobody_in_whom_the_other_keeps_out(
    old: frozenset[str] | None, new: frozenset[str] | None, key: str
) -> None:
    if covers(old, new) and allows(new, key):
        assert allows(old, key)
