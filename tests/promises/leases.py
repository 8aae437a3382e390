"""The promises about leases: tokens rise, a contact has one holder, and nobody sends past another's lease or take-over.

They suppose that no agent makes its lease shorter. What a lease does to mail is looked at where leases bind it: not for
transactional mail and a tenant's own people, nor where the policy is not enforced.
"""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tests.promises.record import History
from tests.promises.shapes import TRANSACTION, Call, Row, Tenure


def none_by_a_stale_token(history: History) -> Iterator[str]:
    """Mail with a token is accepted while that token is its agent's, and the newest.

    When it is let go later, no other agent has acquired since: that its own lease ended or rose does not matter (SEMANTICS 6).
    """
    for row in history.rows.deliveries:
        send = history.sends[row["send_id"]]
        token = json.loads(send["tokens"]).get(row["contact"])
        for decision in history.let_go(row) if token is not None and history.leases_bind else ():
            at, accepting = decision["at_us"], decision["moment"] == "acceptance"
            before = [t for t in history.leases.get(row["contact"], []) if t.start < at]
            newer = [t for t in before if t.token > token and (accepting or t.agent != send["agent"])]
            if newer:
                yield f"{send['id']} was let go with token {token} of {row['contact']} after token {newer[-1].token}"
            if accepting and not any(t.token == token and t.agent == send["agent"] for t in before):
                yield f"{send['id']} was accepted with token {token} of {row['contact']}, which its agent never had"


def no_permit_after_a_take_over(history: History) -> Iterator[str]:
    """No mail gets its permit when another agent has acquired the contact since it was last let go.

    Whoever acquires waits for others' mail in flight, or stops it in the same transaction, an operator's override or not. What
    has its permit by then bears a mark, and does not go a second time; what is unknown or waits is judged again first.
    """
    for row in history.rows.deliveries:
        others = history.others(row)
        lets = [one["at_us"] for one in history.passes(row["send_id"])] if others else []
        for permit in sorted(history.permits(row)) if lets else ():
            since = max((at for at in lets if at <= permit), default=permit)
            for tenure in others:
                if since < tenure.start < permit and not _was_permitted(history, row, tenure, permit):
                    yield f"{row['id']} got its permit after {tenure} had taken {row['contact']}"


def _was_permitted(history: History, row: Row, tenure: Tenure, permit: int) -> bool:
    """Whether the permit came between the take-over's time and its look, which then left the mark; no second attempt does."""
    between = [t for t in history.tries[row["id"]] if t["ended_us"] and tenure.start < t["ended_us"] < permit]
    return bool(row["forbidden"]) and permit - tenure.start < TRANSACTION and not between


def one_holder_at_a_time(history: History) -> Iterator[str]:
    """No lease begins before the one before it has ended, and nobody else's mail is let go while it lives.

    Nobody but an operator who overrides it, that is.
    """
    for contact, mine in history.leases.items():
        for first, second in itertools.pairwise(mine):
            if second.start < first.end:
                yield f"{contact} had two holders: {first} and {second}"
    for row in history.rows.deliveries:
        others = [] if history.sends[row["send_id"]]["override"] else history.others(row)
        for decision in history.let_go(row) if others else ():
            if any(tenure.start < decision["at_us"] < tenure.end for tenure in others):
                yield f"{row['send_id']} was let go while another agent held {row['contact']}"


def tokens_rise(history: History) -> Iterator[str]:
    """Each acquisition has the next token, in the store's order and in the order in which agents saw them."""
    for contact, tenures in history.leases.items():
        tokens = [tenure.token for tenure in tenures]
        if tokens != list(range(1, len(tokens) + 1)):
            yield f"the tokens of {contact} are {tokens}"
    got: defaultdict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.act == "acquire" and call.answer and "fencingToken" in call.answer:
            got[call.contact].append(call)
    for contact, calls in got.items():
        for earlier in calls:
            for later in calls:
                if earlier.answered is not None and earlier.answered < later.asked:
                    yield from _not_lower(contact, earlier.answer or {}, later.answer or {})


def _not_lower(contact: str, earlier: Mapping[str, Any], later: Mapping[str, Any]) -> Iterator[str]:
    first, then = earlier["fencingToken"], later["fencingToken"]
    if then < first or (then == first) != (earlier["id"] == later["id"]):
        yield f"{contact} gave token {first} and later {then}"
