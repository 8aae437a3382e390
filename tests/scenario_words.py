"""The words in which scenario files speak: sentences that become facts, times in words, mails, findings.

A sentence is one of `PHRASES`; whatever is not said is as usual (tests/builders). A fact of a new kind gets its
sentence here.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gateway.core.consensus import Status
from gateway.core.facts import (
    AgentAnswer,
    AgentAsk,
    Ask,
    ConflictsAsk,
    ConsensusAnswer,
    ConsensusAsk,
    ConsentAnswer,
    ConsentAsk,
    Facts,
    Flight,
    FlightsAsk,
    KeyAsk,
    LastContactAnswer,
    LastContactAsk,
    LeaseAnswer,
    LeaseAsk,
    MailboxAsk,
    Recent,
    RecentAsk,
    SuppressionAnswer,
    SuppressionAsk,
    ThreadAsk,
    UnknownsAsk,
    UsageAnswer,
    UsageAsk,
)
from gateway.core.mail import Kind, Moment, Submission
from gateway.core.mime import Traits
from gateway.core.sketch import sketch
from gateway.core.verdict import Finding
from tests.builders import OWN, a_content, a_mail, an_address, answers

Change = Callable[[Ask[Any], Any], Any]
"""What a sentence makes of the answer to an ask; most asks it leaves alone."""

PHRASES: list[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Change]]] = []

UNITS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
WHO = r"(?P<who>\S+@\S+)"
TIME = r"(?P<time>\d+ (?:second|minute|hour|day)s?(?: \d+ (?:second|minute|hour)s?)*)"


def phrase(pattern: str) -> Callable[[Callable[[re.Match[str], datetime], Change]], None]:
    """Adds a sentence to the language."""
    return lambda read: PHRASES.append((re.compile(pattern), read))


def read(sentence: str, now: datetime) -> Change:
    """What a sentence says; an unknown one fails the test."""
    for pattern, make in PHRASES:
        words = pattern.fullmatch(sentence)
        if words:
            return make(words, now)
    raise AssertionError(f"no phrase says {sentence!r}")


def span(text: str) -> timedelta:
    """`2 minutes 5 seconds` as a duration."""
    return timedelta(seconds=sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+) ([a-z]+?)s?\b", text)))


def moment(text: str, now: datetime) -> datetime:
    """`in 5 minutes` or `5 minutes ago` as a time."""
    return now - span(text) if text.endswith(" ago") else now + span(text)


def in_words(time: datetime, now: datetime) -> str:
    """A time as the scenario files write it."""
    seconds = abs(int((time - now).total_seconds()))
    parts = []
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    text = " ".join(parts)
    return "now" if not text else f"{text} ago" if time < now else f"in {text}"


def facts_from(sentences: list[str], questions: Iterable[Ask[Any]], now: datetime) -> Facts:
    """The answers to all questions, as the sentences say or as usual."""
    changes = [read(sentence, now) for sentence in sentences]
    told: dict[Ask[Any], Any] = {}
    for ask in questions:
        told[ask] = answers(asked=[ask], now=now)[ask]
        for change in changes:
            told[ask] = change(ask, told[ask])
    return answers(told, now=now)


def mail_from(table: Mapping[str, Any], now: datetime) -> Submission:
    """The usual mail with what a scenario says of it."""
    words = dict(table)
    form = words.pop("form", {})
    traits: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in form.items()}
    text = words.pop("text", None)
    content = a_content(
        header_from=tuple(words.pop("from", [OWN])),
        size=words.pop("size", 2000),
        digest=words.pop("content", "digest-1"),
        traits=Traits(**traits),
        sketch=b"" if text is None else sketch("", text, None),
        in_reply_to=words.pop("answers", None),
        auto_submitted=words.pop("auto_submitted", ""),
    )
    for name, kind in (("kind", Kind), ("moment", Moment)):
        if name in words:
            words[name] = kind(words[name])
    for name, field in (("scheduled", "not_before"), ("in_flight_since", "since")):
        if name in words:
            words[field] = moment(words.pop(name), now)
    for name, field in (("agent", "agent"), ("key", "key_id")):
        if name in words:
            words[field] = words.pop(name) or None  # "" is nobody
    tokens = {an_address(who).key: token for who, token in words.pop("tokens", {}).items()}
    return a_mail(content=content, tokens=tokens, **words)


def plain(finding: Finding, now: datetime) -> dict[str, Any]:
    """A finding as the scenario files write it; its policy is the file's, its words are not compared."""
    body: dict[str, Any] = {"reason": finding.reason.slug}
    if finding.recipient:
        body["recipient"] = finding.recipient
    if finding.until:
        body["until"] = finding.until
    if finding.estimate:
        body["estimate"] = True
    if finding.observed:
        body["observed"] = True
    written = _times_in_words({**body, **finding.extra}, now)
    assert isinstance(written, dict)
    return written


def _times_in_words(value: object, now: datetime) -> object:
    if isinstance(value, datetime):
        return in_words(value, now)
    if isinstance(value, dict):
        return {name: _times_in_words(member, now) for name, member in value.items()}
    return value


def _to(ask: Ask[Any], answer: object) -> Change:
    return lambda asked, old: answer if asked == ask else old


def _key(words: re.Match[str]) -> str:
    return an_address(words["who"]).key


# --- the sentences ----------------------------------------------------------------------------------------------------


@phrase(r"the key is revoked")
def _(words: re.Match[str], now: datetime) -> Change:
    return lambda ask, old: replace(old, live=False) if isinstance(ask, KeyAsk) else old


@phrase(r"the key is for (?P<mailboxes>\S+) alone")
def _(words: re.Match[str], now: datetime) -> Change:
    return lambda ask, old: replace(old, mailboxes=(words["mailboxes"],)) if isinstance(ask, KeyAsk) else old


@phrase(r"the (?P<who>key|mailbox) may send transactional mail")
def _(words: re.Match[str], now: datetime) -> Change:
    kind = KeyAsk if words["who"] == "key" else MailboxAsk
    return lambda ask, old: replace(old, transactional=True) if isinstance(ask, kind) else old


@phrase(r"the mailbox may send replies")
def _(words: re.Match[str], now: datetime) -> Change:
    return lambda ask, old: replace(old, may_reply=True) if isinstance(ask, MailboxAsk) else old


@phrase(r"the mailbox is (?P<status>\w+)")
def _(words: re.Match[str], now: datetime) -> Change:
    return lambda ask, old: replace(old, status=words["status"]) if isinstance(ask, MailboxAsk) else old


@phrase(r"the mailbox demands (?:a )?(?P<what>lease|token|both)")
def _(words: re.Match[str], now: datetime) -> Change:
    return lambda ask, old: replace(old, demands=words["what"]) if isinstance(ask, MailboxAsk) else old


@phrase(r"the mailbox demands a consensus")
def _(words: re.Match[str], now: datetime) -> Change:
    return lambda ask, old: replace(old, require_consensus=True) if isinstance(ask, MailboxAsk) else old


@phrase(r"there is no consensus (?P<id>\S+)")
def _(words: re.Match[str], now: datetime) -> Change:
    return _to(ConsensusAsk(words["id"]), ConsensusAnswer())


@phrase(rf"consensus (?P<id>\S+) about {WHO} is (?P<status>\w+)(?: for another {TIME})?")
def _(words: re.Match[str], now: datetime) -> Change:
    ends = now + span(words["time"] or "")
    return _to(ConsensusAsk(words["id"]), ConsensusAnswer(Status(words["status"]), _key(words), ends))


@phrase(r"the (?P<whose>tenant|mailbox|agent) allows (?P<whom>nobody|.+)")
def _(words: re.Match[str], now: datetime) -> Change:
    allowed = frozenset() if words["whom"] == "nobody" else frozenset(words["whom"].split(" and "))
    field = "tenant_allowed" if words["whose"] == "tenant" else "allowed"
    kind = AgentAsk if words["whose"] == "agent" else MailboxAsk
    return lambda ask, old: replace(old, **{field: allowed}) if isinstance(ask, kind) else old


@phrase(rf"the mailbox has a cooldown of {TIME}")
def _(words: re.Match[str], now: datetime) -> Change:
    seconds = int(span(words["time"]).total_seconds())
    return lambda ask, old: replace(old, cooldown=seconds) if isinstance(ask, MailboxAsk) else old


@phrase(r"(?P<agent>\S+) is not registered")
def _(words: re.Match[str], now: datetime) -> Change:
    return _to(AgentAsk(words["agent"]), AgentAnswer())


ANOTHER = r"(?:; another agent had token (?P<foreign>\d+))?"


@phrase(rf"(?P<agent>\S+) holds the lease on {WHO} with token (?P<token>\d+) for another {TIME}{ANOTHER}")
def _(words: re.Match[str], now: datetime) -> Change:
    agent, ends, foreign = words["agent"], now + span(words["time"]), int(words["foreign"] or 0)
    lease = LeaseAnswer(agent, agent, int(words["token"]), ends, owner=agent, foreign=foreign)
    return _to(LeaseAsk(_key(words)), lease)


@phrase(rf"(?P<agent>\S+) had the lease on {WHO} with token (?P<token>\d+) and it has ended{ANOTHER}")
def _(words: re.Match[str], now: datetime) -> Change:
    lease = LeaseAnswer(token=int(words["token"]), owner=words["agent"], foreign=int(words["foreign"] or 0))
    return _to(LeaseAsk(_key(words)), lease)


@phrase(rf"(?P<agent>\S+) has met another agent's lease on {WHO} with (?P<ids>\S+) and (?P<more>\S+)")
def _(words: re.Match[str], now: datetime) -> Change:
    return _to(ConflictsAsk(words["agent"], _key(words)), frozenset({words["ids"], words["more"]}))


@phrase(rf"mail (?P<id>\S+) from (?P<actor>\S+) to {WHO} is on its way for {TIME}(?P<permit>, past its permit)?")
def _(words: re.Match[str], now: datetime) -> Change:
    actor, since, permitted = words["actor"], now - span(words["time"]), bool(words["permit"])
    flight = Flight(words["id"], actor, actor, since, permitted, Kind.OUTREACH)
    contact = _key(words)
    return lambda ask, old: (*old, flight) if ask == FlightsAsk(contact) else old


@phrase(rf"{WHO} was reached {TIME} ago(?: by mail (?P<by>\S+))?")
def _(words: re.Match[str], now: datetime) -> Change:
    last = LastContactAnswer(now - span(words["time"]), words["by"] or "r-0")
    return _to(LastContactAsk(_key(words)), last)


@phrase(rf"{WHO} is suppressed because of a (?P<code>\w+)(?:, scope (?P<scope>\w+))?(?: (?P<campaign>\w+))?")
def _(words: re.Match[str], now: datetime) -> Change:
    key, campaign = _key(words), words["campaign"]
    found = SuppressionAnswer(words["scope"] or "tenant", words["code"])

    def change(ask: Ask[Any], old: object) -> object:
        hit = isinstance(ask, SuppressionAsk) and ask.key == key and campaign in (None, ask.campaign)
        return found if hit else old

    return change


@phrase(rf"{WHO} has (?P<what>given|withdrawn) (?P<no>no |a )?consent(?: by (?P<basis>\w+))?")
def _(words: re.Match[str], now: datetime) -> Change:
    consent = ConsentAnswer(words["basis"] or "", words["what"] == "withdrawn")
    return _to(ConsentAsk(_key(words)), consent)


@phrase(rf"mail (?P<id>\S+) to {WHO} with content (?P<digest>\S+) is unknown")
def _(words: re.Match[str], now: datetime) -> Change:
    contact, unknown = _key(words), (words["id"], words["digest"])
    return lambda ask, old: (*old, unknown) if ask == UnknownsAsk(contact) else old


KIND = r"(?: as (?P<kind>\w+))?"
SAID = r"(?: that answers (?P<answers>\S+))?(?: and said: (?P<text>.*))?"


@phrase(rf"mail (?P<id>\S+) set out from (?P<mailbox>\S+) to {WHO}{KIND} {TIME} ago{SAID}")
def _(words: re.Match[str], now: datetime) -> Change:
    kept = b"" if words["text"] is None else sketch("", words["text"], None)
    kind, at = Kind(words["kind"] or "outreach"), now - span(words["time"])
    recent, key = Recent(words["id"], at, words["mailbox"], kind, kept, words["answers"] or ""), _key(words)

    def change(ask: Ask[Any], old: Any) -> object:  # noqa: ANN401
        return (*old, recent) if isinstance(ask, RecentAsk) and ask.key == key else old

    return change


@phrase(rf"mail (?P<id>\S+) of thread (?P<thread>\S+) set out {TIME} ago")
def _(words: re.Match[str], now: datetime) -> Change:
    pair = (words["id"], now - span(words["time"]))

    def change(ask: Ask[Any], old: Any) -> object:  # noqa: ANN401
        return (*old, pair) if isinstance(ask, ThreadAsk) and ask.thread == words["thread"] else old

    return change


WINDOW = rf"this (?P<window>hour|day|month), which ends in {TIME}"


@phrase(rf"the (?P<scope>agent|mailbox|tenant) (?P<id>\S+) has used (?P<used>\d+) of {WINDOW}")
def _(words: re.Match[str], now: datetime) -> Change:
    usage = UsageAnswer(int(words["used"]), now + span(words["time"]))
    return _to(UsageAsk(words["scope"], words["id"], words["window"]), usage)
