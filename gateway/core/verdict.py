"""What one policy says (finding) and what all of them together come to (decision).

A finding can only make the verdict stricter: nothing grants, nothing silences. The class of every status code is
computed from the verdict here, in one place, and stored nowhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import cast


class Verdict(IntEnum):
    """From mild to strict; the strictest finding is the verdict of the mail."""

    PASS = 0
    HOLD = 1
    DEFER = 2
    REFUSE = 3


PASS, HOLD, DEFER, REFUSE = Verdict

STATUS_CLASS = {PASS: 2, HOLD: 2, DEFER: 4, REFUSE: 5}
"""First digit of reply and enhanced status code (RFC 5321 4.2.1, RFC 3463 2)."""


class Mode(StrEnum):
    """How seriously a policy is taken: configuration says so, never the policy."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a mail does not simply go: a row of the table in SEMANTICS 4.

    `detail` is the enhanced status code without its class ("7.1"), `reply` the last two digits of the SMTP reply ("50"),
    `strict` the HTTP status of a strict refusal, `text` dull words for strangers, `next` what the author should do.
    `alarm` is the event that tells an operator, once for all refusals of one subject within the finding's `windowSeconds`.
    Where a refusal `waits`, mail that was accepted before is held until its cause has passed, and is not ended by it.
    """

    slug: str
    verdict: Verdict
    detail: str
    text: str
    next: str
    reply: str = "50"
    strict: int = 403
    alarm: str = ""
    waits: bool = False

    @property
    def enhanced(self) -> str:
        """The enhanced status code, e.g. "4.7.1" (RFC 3463)."""
        return f"{STATUS_CLASS[self.verdict]}.{self.detail}"

    @property
    def code(self) -> int:
        """The SMTP reply code, e.g. 450; a hold is a yes with words."""
        return 250 if self.verdict <= HOLD else int(f"{STATUS_CLASS[self.verdict]}{self.reply}")

    def about(
        self,
        recipient: str | None = None,
        *,
        until: datetime | None = None,
        estimate: bool = False,
        text: str = "",
        **extra: object,
    ) -> "Finding":
        """Make a finding about one recipient (its key) or, with `None`, about the whole mail.

        `until` (UTC) is when it may be otherwise, `estimate` marks one that depends on a delivery, `extra` are members of
        the answer in the wire's spelling (`leaseHolder`, `used`, ...).
        """
        return Finding(self, recipient, until, estimate, text or self.text, extra)


def timeless(value: Mapping[str, object]) -> dict[str, object]:
    """The members without times, in members of members too: a lease that was extended is the same obstacle."""
    kept = ((name, one) for name, one in value.items() if not isinstance(one, datetime))
    return {n: timeless(cast("Mapping[str, object]", v)) if isinstance(v, Mapping) else v for n, v in kept}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one policy found: reason, whom it concerns, until when. `observed` ones are listed and change nothing."""

    reason: Reason
    recipient: str | None = None
    until: datetime | None = None
    estimate: bool = False
    text: str = ""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    policy: str = ""
    observed: bool = False

    @property
    def verdict(self) -> Verdict:
        """How strict it is; an observed finding weighs nothing."""
        return PASS if self.observed else self.reason.verdict

    @property
    def mark(self) -> str:
        """What an approval names: the policy, its reason, whom it concerns and what exactly was found, but for times."""
        about = [f"{name}={value}" for name, value in sorted(timeless(self.extra).items())]
        return " ".join([self.policy, self.reason.slug, *([self.recipient] if self.recipient else []), *about])

    def by(self, policy: str, *, observed: bool) -> "Finding":
        """Return the finding signed with the policy's name."""
        return replace(self, policy=policy, observed=observed)


@dataclass(frozen=True)
class Decision:
    """All findings of all policies about one mail, in table order, and the verdict they make.

    `rules` are the names of the policies that were asked, in table order; `at` is the store's time (UTC).
    `approved` are the hold findings (their marks) that a person has let pass (SEMANTICS 5).
    """

    findings: tuple[Finding, ...]
    rules: tuple[str, ...]
    at: datetime
    approved: frozenset[str] = frozenset()

    def weight(self, finding: Finding) -> Verdict:
        """The verdict that a finding adds: approved holds weigh nothing."""
        if finding.verdict is HOLD and finding.mark in self.approved:
            return PASS
        return finding.verdict

    @cached_property
    def strictest(self) -> Finding | None:
        """The finding that gives the reason: by verdict, then `suppressed`, then table order; `None` on a pass."""
        weighty = [f for f in self.findings if self.weight(f) > PASS]
        return max(weighty, key=lambda f: (f.verdict, f.reason.slug == "suppressed"), default=None)

    @property
    def verdict(self) -> Verdict:
        """The strictest verdict of all findings."""
        return self.strictest.verdict if self.strictest else PASS

    @property
    def allow(self) -> bool:
        """Whether the mail was taken, to leave now, later or after a person's word."""
        return self.verdict <= HOLD

    @property
    def waits(self) -> bool:
        """Whether nothing refuses it but what will pass (a paused mailbox)."""
        refusing = [f.reason for f in self.findings if f.verdict is REFUSE]
        return bool(refusing) and all(reason.waits for reason in refusing)

    @property
    def reason(self) -> Reason | None:
        """The strictest finding's reason."""
        return self.strictest.reason if self.strictest else None

    @property
    def retry_at(self) -> datetime | None:
        """When all that defers has passed, as far as is known (UTC); `None` where a refusal stands in the way."""
        if self.verdict is not DEFER:
            return None
        times = [f.until for f in self.findings if f.verdict is DEFER and f.until]
        return max(times, default=None)


POLICY_ERROR = Reason(
    "policy_error", DEFER, "3.0", "a check could not answer", "try again later", reply="51", strict=503
)
STORE_UNAVAILABLE = Reason(
    "store_unavailable", DEFER, "3.0", "the store cannot answer", "try again later", reply="51", strict=503
)
KEY_REUSED = Reason(
    "idempotency_key_reused",
    REFUSE,
    "5.4",
    "the idempotency key belongs to another message",
    "ask for that request first; use a new key only for a new message",
    reply="54",
    strict=422,
)
CORE_REASONS = (POLICY_ERROR, STORE_UNAVAILABLE, KEY_REUSED)
