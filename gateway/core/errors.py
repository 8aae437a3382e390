"""What can go wrong inside, as classes; what strangers see of it is decided at the doors."""

from collections.abc import Sequence


class GatewayError(Exception):
    """Something failed that the caller can be told about in one dull sentence."""


class StoreUnavailableError(GatewayError):
    """The store cannot answer now: locked, down, full, or the outcome of a commit is not known. Means later, never yes."""


class StoreBusyError(StoreUnavailableError):
    """Somebody else held a lock for longer than we wait for one: to try again at once would only be to wait again."""


class CommitInDoubtError(StoreUnavailableError):
    """The line broke at the commit and nobody could be asked since: what was wanted may have been done."""


class NotFoundError(GatewayError):
    """No such thing in this tenant; another tenant's ids look the same."""


class ConflictError(GatewayError):
    """The thing is there but in a state in which this cannot be done. `slug` and `extra` go into the answer."""

    def __init__(self, slug: str, message: str, **extra: object) -> None:
        """Keep the slug for programs and the sentence for people."""
        super().__init__(message)
        self.slug = slug
        self.extra = extra


class HumanDecisionError(GatewayError):
    """Only a person may do this: it loosens the controls named by `loosens` (their names on the wire)."""

    def __init__(self, kind: str, about: str, loosens: Sequence[str]) -> None:
        """Keep the kind (`mailbox-resume`, `tenant-settings`, ...), the id of what it is about, what it would loosen."""
        super().__init__("this loosens a control; an operator may do it")
        self.kind = kind
        self.about = about
        self.loosens = tuple(loosens)


class UnaskedFactError(GatewayError):
    """A policy read a fact that it had not asked for."""
