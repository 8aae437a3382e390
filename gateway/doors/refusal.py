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


def forbidden(slug: str, message: str, **extra: object) -> Refusal:
    """The caller is known and may not do this."""
    return Refusal(403, slug, message, **extra)


def missing(slug: str, message: str, **extra: object) -> Refusal:
    """There is no such thing for this caller; another tenant's looks the same."""
    return Refusal(404, slug, message, **extra)
