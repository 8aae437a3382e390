"""What a door refuses before anything is judged: a slug for programs and a sentence for people, in no protocol's terms.

`status` is the HTTP status that says the same (SEMANTICS 4, wire errors); other doors map it to their own replies.
"""

from collections.abc import Iterable


class Refusal(Exception):  # noqa: N818 - it says what the door does
    """The caller did something wrong, or may not do it; nothing was stored. `extra` are members of the answer."""

    def __init__(self, status: int, slug: str, message: str, **extra: object) -> None:
        """Keep what the door tells; `message` must be dull: no content of the caller's is ever in it."""
        super().__init__(message)
        self.status = status
        self.slug = slug
        self.message = message
        self.extra = extra


class Faults(Refusal):
    """What was asked for is malformed: every bad field with one sentence, in the order in which they were found."""

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        """Take pairs of field and sentence."""
        self.faults = tuple(dict.fromkeys(faults))
        errors = [{"field": field, "message": why} for field, why in self.faults]
        super().__init__(422, "invalid_request", "some fields are not valid", errors=errors)


class HumanRefusal(Refusal):
    """Only a person may do this, by confirming the request as it was made, or with a key of their own."""

    def __init__(self, message: str, *, kind: str, about: str, loosens: Iterable[str] = ()) -> None:
        """Take what it is about: a kind (`api-key`, ...), an id or `new`, and what it loosens by its name on the wire."""
        super().__init__(403, "human_decision_required", message)
        self.kind = kind
        self.about = about
        self.loosens = tuple(loosens)


def forbidden(slug: str, message: str, **extra: object) -> Refusal:
    """The caller is known and may not do this."""
    return Refusal(403, slug, message, **extra)


def missing(slug: str, message: str, **extra: object) -> Refusal:
    """There is no such thing for this caller; another tenant's looks the same."""
    return Refusal(404, slug, message, **extra)
