"""Allow lists: to whom mail may go, as patterns of domains and addresses.

`*` is everybody, `example.com` (or `*@example.com`) that domain alone, `*.example.com` every domain below it and not the
domain itself, `pat@example.com` one person. An absent list (`None`) allows everybody, an empty one nobody. Patterns are
compared label by label, so that what merely looks alike matches nothing.
"""

from collections.abc import Iterable

from gateway.core.address import DEFAULT_RULES, AddressError, KeyRules, domain_of, parse

Allowed = frozenset[str] | None
EVERYBODY = "*"
LONGEST = 320  # characters of a pattern


def pattern(text: str, rules: KeyRules = DEFAULT_RULES) -> str:
    """The one form of a pattern: domains as lowercase A-labels behind all aliases, a person by key.

    Raises AddressError for what is none.
    """
    if text in (EVERYBODY, "*@*"):
        return EVERYBODY
    if len(text) > LONGEST:
        raise AddressError("the pattern is too long")
    local, at, domain = text.rpartition("@")
    if at and local != EVERYBODY:
        return rules.key(parse(f"{local}@example.com").local, domain_of(domain))
    if domain.startswith("*."):
        return f"*.{rules.canonical(domain_of(domain[2:]))}"
    return rules.canonical(domain_of(domain))


def patterns(texts: Iterable[str], rules: KeyRules = DEFAULT_RULES) -> frozenset[str]:
    """The patterns of a list. Raises AddressError for the first that is none."""
    return frozenset(pattern(text, rules) for text in texts)


def allows(allowed: Allowed, key: str) -> bool:
    """Whether mail may go to the person with this key."""
    if allowed is None:
        return True
    domain = key.rpartition("@")[2]
    return not allowed.isdisjoint({EVERYBODY, key, domain, *_above(domain)})


def covers(old: Allowed, new: Allowed) -> bool:
    """Whether `new` lets nobody in whom `old` keeps out."""
    if old is None or EVERYBODY in old:
        return True
    return new is not None and all(_covered(old, one) for one in new)


def _covered(old: frozenset[str], one: str) -> bool:
    if one in old:
        return True
    if one.startswith("*."):  # all that is below a domain is also below each domain above that
        return not old.isdisjoint(_above(one[2:]))
    return one != EVERYBODY and allows(old, one)


def _above(domain: str) -> list[str]:
    """The patterns by which domains above this one let it in."""
    labels = domain.split(".")
    return [f"*.{'.'.join(labels[i:])}" for i in range(1, len(labels))]
