"""What a batch of sends may hold: items in the shape of a single send, and what they share, said once.

A member beside `sends` stands for every item that does not say it itself. An item's own word wins: where it names its
author, its content or a whole message in another form, the shared ones of that kind are left out.
"""

import copy
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, create_model

from gateway.core.errors import ConflictError, StoreUnavailableError
from gateway.core.headers import has_controls
from gateway.core.record import Document
from gateway.core.verdict import STORE_UNAVAILABLE
from gateway.doors.asked import COMPOSED, CONTENT, NOBODY, SendRequest
from gateway.doors.fields import Shape
from gateway.doors.http.described import each
from gateway.doors.refusal import Refusal

ITEMS_MAX = 500
WHOLE_MAX = 8
"""The messages of a batch hold at most this many times the largest message, all together."""
ECHO_MAX = 320
"""Characters of an address that is told again as it came."""
GROUP_ITEMS = 64
"""Items that are decided in one transaction."""
GROUP_PEOPLE = 2000
"""Recipients from which on no more items join a group: each is a row, refused or not."""
GROUP_BYTES = 4_194_304
"""Bytes of messages from which on no more join a group: others wait for the store meanwhile."""

OWN = frozenset(
    {"tenant_id", "recipient_email", "to", "cc", "bcc", "in_reply_to", "references", "raw_message", "dry_run"}
    | {"idempotency_key", "dedupe_key", "fencing_token", "fencing_tokens"}
)
"""Fields of a send that only an item can say."""
AUTHOR = frozenset({"from", "mailboxId"})
LISTS = ("sends", "recipientEmails")

Json = dict[str, Any]


class Batch(Shape):
    """What all batches have in common."""

    unsupported: ClassVar = SendRequest.unsupported

    dry_run: bool = Field(default=False, description="Judge all items and write nothing.")

    @classmethod
    def clashes(cls, given: Json) -> list[tuple[str, str]]:
        """As of a single send. Raises Refusal 400 where there are more than ITEMS_MAX items."""
        for name in LISTS:
            many = given.get(name)
            if isinstance(many, list) and len(many) > ITEMS_MAX:
                raise Refusal(
                    400,
                    "batch_too_large",
                    f"a batch has at most {ITEMS_MAX} items; nothing of it was processed",
                    field=name,
                    max=ITEMS_MAX,
                    received=len(many),
                )
        shared = {"templateId": "an item's own", **given}  # variables may be for templates that items name
        return [one for one in SendRequest.clashes(shared) if one[1] != NOBODY]

    @classmethod
    def shared(cls, given: Json) -> Json:
        """The members that stand for every item."""
        return {name: value for name, value in given.items() if name not in (*LISTS, "tenantId", "dryRun")}


class _Trial(Batch):
    recipient_emails: Annotated[list[Any], Field(min_length=1)] = Field(
        default_factory=list,
        description="In place of sends: one mail to each of these people.",
        json_schema_extra={"maxItems": ITEMS_MAX, "items": {"type": "string"}},
    )

    @classmethod
    def clashes(cls, given: Json) -> list[tuple[str, str]]:
        """One list or the other."""
        found = super().clashes(given)
        if sum(given.get(name) is not None for name in LISTS) != 1:
            found.append(("sends", "either this or recipientEmails is needed"))
        return found


_SHARED: Any = {
    name: (field.annotation, copy.copy(field)) for name, field in SendRequest.model_fields.items() if name not in OWN
}
_Sends = Annotated[list[Any], Field(min_length=1), each(SendRequest, ITEMS_MAX)]
_WORDS = "At most 500; each is read on its own. email is the same as recipientEmail here."

BatchRequest: type[Batch] = create_model(
    "BatchRequest",
    __base__=Batch,
    __doc__="Many mails to send.",
    sends=(_Sends, Field(description=_WORDS)),
    **_SHARED,
)
BatchTrial: type[Batch] = create_model(
    "BatchTrial",
    __base__=_Trial,
    __doc__="Many mails to try in a dry run.",
    sends=(_Sends, Field(default_factory=list, description=_WORDS)),
    **_SHARED,
)


def items_of(given: Json) -> list[Any]:
    """The items of a batch as JSON, each with what all share. They are yet to be read, one by one."""
    shared = Batch.shared(given)
    if given.get("recipientEmails") is not None:
        return [shared | {"recipientEmail": one} for one in given["recipientEmails"]]
    return [merged(shared, item) for item in given["sends"]]


def merged(shared: Json, item: object) -> object:
    """An item with what the batch shares; what is no object stays as it is."""
    if not isinstance(item, dict):
        return item
    own = dict(item)
    if "email" in own and "recipientEmail" not in own:
        own["recipientEmail"] = own.pop("email")
    rest = {name: value for name, value in shared.items() if name not in own}
    left_out = AUTHOR if AUTHOR & own.keys() else frozenset[str]()
    if own.get("rawMessage") is not None:
        left_out |= {*COMPOSED, "templateId"}
    made = {name: value for name, value in rest.items() if name not in left_out} | own
    return _one_content(made, shared if own.get("rawMessage") is None else {}, own)


def _one_content(made: Json, shared: Json, own: Json) -> Json:
    """Content in one form: where any of it stands in `payload`, all of it does, an item's before the shared."""
    said = {name: own[name] for name in CONTENT if own.get(name) is not None}
    if not isinstance(made.get("payload"), dict) or (said and own.get("payload") is not None):
        return made
    beside = {name: shared[name] for name in CONTENT if shared.get(name) is not None and name not in own}
    below = [one for one in (shared.get("payload"), own.get("payload")) if isinstance(one, dict)]
    payload: Json = dict(beside)
    for one in below:
        payload |= one
    return {name: value for name, value in made.items() if name not in CONTENT} | {"payload": payload | said}


def weigh(items: Sequence[object], limit: int) -> list[int]:
    """About how many bytes each item holds. Raises Refusal 413 where all together hold more than `limit`.

    Uploads and templates that it names are not among them.
    """
    weights = [_weight(item) for item in items]
    if sum(weights) > limit:
        raise too_much(limit, received=sum(weights))
    return weights


def too_much(limit: int, **more: object) -> Refusal:
    """All messages together hold too much, or those up to this one do."""
    return Refusal(
        413,
        "body_too_large",
        f"the messages of this batch hold more than {limit} bytes; send fewer at once",
        limit=limit,
        **more,
    )


def _weight(value: object) -> int:
    """The characters of all texts within a value of JSON; its depth has an end."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_weight, inner))


def named(item: object) -> str | None:
    """Whom an item names, as it came, where that can be told again."""
    given = item if isinstance(item, dict) else {}
    who = given.get("recipientEmail")
    return who if isinstance(who, str) and len(who) <= ECHO_MAX and not has_controls(who) else None


def error_of(error: Exception) -> Document:
    """Why an item has no receipt, in the members of any other error."""
    if isinstance(error, Refusal):
        slug, words, more = error.slug, error.message, error.extra
    elif isinstance(error, ConflictError):
        slug, words, more = error.slug, str(error), error.extra
    elif isinstance(error, StoreUnavailableError):
        slug, words, more = STORE_UNAVAILABLE.slug, STORE_UNAVAILABLE.text, {"nextAction": STORE_UNAVAILABLE.next}
    else:  # the writer has logged it
        slug, words, more = "internal_error", "something went wrong here; it was logged", {}
    return {"error": slug, "reason": slug, "message": words, **more}
