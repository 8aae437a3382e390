"""The policies of the gateway: THE TABLE, how seriously its rows are taken, and every reason that they can give.

A policy is a file in this folder, named like its row: a frozen class that says which facts it needs and what is wrong
with a mail, and `REASONS`, the reasons it can give. Policies see only the core and do not know each other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, cast, get_type_hints

from gateway.core.judge import Policy, Rule
from gateway.core.mail import Kind
from gateway.core.verdict import CORE_REASONS, Mode, Reason


@dataclass(frozen=True, slots=True)
class Row:
    """A policy in the table: its file in this folder and its class there.

    An `always` one is enforced for all mail, `overridable` ones give way to an operator's word; `mode` is how seriously it
    is taken where no setting says it.
    """

    name: str
    policy: str
    always: bool = False
    overridable: bool = False
    mode: Mode = Mode.ENFORCE

    @property
    def module(self) -> ModuleType:
        """The policy's file."""
        return import_module(f"policies.{self.name}")

    @property
    def kind(self) -> Any:  # noqa: ANN401  (a dataclass that is a `Policy`: there is no type for both)
        """The policy's class."""
        return getattr(self.module, self.policy)


TABLE = (
    Row("recipient", "Recipients", always=True),
    Row("identity", "Identity", always=True),
    Row("lease", "Lease", overridable=True),
    Row("suppression", "Suppression", always=True),
    Row("consent", "Consent", mode=Mode.OFF),
    Row("consensus", "Consensus"),
    Row("cooldown", "Cooldown", overridable=True),
    Row("outstanding", "Outstanding"),
    Row("duplicate", "Duplicate"),
    Row("loop", "Loop"),
    Row("quota", "Quota"),
    Row("content", "Content"),
)
"""All policies, in the order in which people read their findings; it decides nothing else."""

Options = Mapping[str, Mapping[str, object]]

NONE: Options = {}
LARGEST = 2**31 - 1
"""The upper limit of every number in an option: 68 years in seconds, 2 GiB in bytes."""


def rules(options: Options = NONE, defaults: Options = NONE) -> tuple[Rule, ...]:
    """Makes the rules of all policies, in table order, from settings by policy and option.

    `options` are the sections `[policies.<name>]`: the fields of the policy beside `mode` (enforce, observe, off) and
    `applies_to` (kinds of mail and mailboxes; none: all); `defaults` are those that have a setting of their own, such
    as COOLDOWN_SECONDS. Raises ValueError with one line that names the first wrong one.
    """
    known = [row.name for row in TABLE]
    for name in {**defaults, **options}:
        if name not in known:
            raise ValueError(f"policies.{name}: there is no such policy, only {', '.join(known)}")
    return tuple(_rule(row, {**defaults.get(row.name, {}), **options.get(row.name, {})}) for row in TABLE)


def reasons() -> tuple[Reason, ...]:
    """Every reason that can be given, in table order; those that no policy gives come last."""
    return (*(reason for row in TABLE for reason in row.module.REASONS), *CORE_REASONS)


def _rule(row: Row, given: Mapping[str, object]) -> Rule:
    section = f"policies.{row.name}"
    kind = row.kind
    types = get_type_hints(kind)
    options = {field.name: types[field.name] for field in fields(kind)}
    values = {name: value for name, value in given.items() if name not in ("mode", "applies_to")}
    for name in values:
        if name not in options:
            known = ", ".join(["mode", "applies_to", *options])
            raise ValueError(f"{section}.{name}: there is no such option, only {known}")
    mode = _mode(f"{section}.mode", given.get("mode", row.mode))
    applies_to = _applies_to(f"{section}.applies_to", given.get("applies_to", ()))
    if row.always and (mode is not Mode.ENFORCE or applies_to):
        raise ValueError(f"{section}: it is always enforced, for all mail")
    checked = {name: _checked(f"{section}.{name}", value, options[name]) for name, value in values.items()}
    try:
        policy: Policy = kind(**checked)
    except ValueError as error:
        raise ValueError(f"{section}: {error}") from None
    return Rule(row.name, policy, mode, applies_to, row.overridable)


def _mode(where: str, value: object) -> Mode:
    try:
        return Mode(str(value))
    except ValueError:
        raise ValueError(f"{where}: must be one of {', '.join(Mode)}, not {value!r}") from None


def _applies_to(where: str, value: object) -> frozenset[str]:
    names = frozenset(_words(where, value))
    for name in names - frozenset(Kind):
        like = get_close_matches(name.lower(), [kind.value for kind in Kind], n=1, cutoff=0.8)
        if like:  # taken for a mailbox, a slip would switch the policy off for all other mail
            raise ValueError(f"{where}: {name!r} is no kind of mail; is {like[0]!r} meant?")
    return names


def _words(where: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple | set | frozenset):
        given = list(cast("Iterable[object]", value))
        words = tuple(word for word in given if isinstance(word, str) and word)
        if len(words) == len(given):
            return words
    raise ValueError(f"{where}: must be a list of texts, not {value!r}")


def _checked(where: str, value: object, kind: object) -> object:
    """The value as a field of this type wants it: int from 0 to LARGEST, bool, str or tuple[str, ...]."""
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{where}: must be a whole number, not {value!r}")
        if not 0 <= value <= LARGEST:
            raise ValueError(f"{where}: must be from 0 to {LARGEST}, not {value!r}")
    elif kind is bool or kind is str:
        if type(value) is not kind:
            raise ValueError(f"{where}: must be {'true or false' if kind is bool else 'a text'}, not {value!r}")
    else:
        return _words(where, value)
    return value
