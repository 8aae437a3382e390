"""What every answer is, and who has a contact: the shapes that errors hold too. All others are in `shapes`."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An answer; `body` is all of it."""

    body: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder(Shape):
    """Who has a contact: by a lease, or by mail that is on its way (`kind` is lease or send)."""

    agent_id: str | None = None
    agent_name: str | None = None
    expires_at: datetime | None = None
    kind: str | None = None
    request_id: str | None = None
