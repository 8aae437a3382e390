"""Whether a mail would be rewritten in a human voice, and in which style: what is set for a send, its agent, mailbox and tenant.

This gateway rewrites no mail. The settings are kept and weighed here for programs that do, and that ask what holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STYLES = ("casual", "professional", "friendly")
USUAL = "professional"
PROVIDER = "anthropic"
"""What is always read as the provider: it is no choice (the seed)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is set in one place; `None` where nothing is."""

    enabled: bool | None = None
    style: str | None = None


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds in the end."""

    enabled: bool
    style: str


NOTHING = Setting()


def effective(
    *, send: Setting = NOTHING, agent: Setting = NOTHING, mailbox: Setting = NOTHING, tenant: Setting = NOTHING
) -> Effective:
    """Weigh the settings, the closest first: send, agent, tenant, off; for the style send, agent, mailbox, tenant.

    An explicit off wins over an on: who turned itself off stays off, whatever stands closer, and a mailbox can only turn off.
    The tenant's alone is a default, which an agent's or a send's on replaces (agent-config page of the seed).
    """
    if False in (send.enabled, agent.enabled, mailbox.enabled):
        enabled = False
    else:
        enabled = next((one.enabled for one in (send, agent, tenant) if one.enabled is not None), False)
    style = next((one.style for one in (send, agent, mailbox, tenant) if one.style is not None), USUAL)
    return Effective(enabled, style)


def loosened(before: Effective, after: Effective, old: Setting, new: Setting) -> list[str]:
    """What a change of one place's setting needs a person for: to turn it on, and another style while it is on.

    `before` and `after` are what holds by all settings, `old` and `new` what is set in that place. Names: enabled, style.
    """
    found = ["enabled"] if new.enabled and not old.enabled else []
    restyled = before.enabled and after.enabled and before.style != after.style
    return [*found, "style"] if restyled else found


def setting(values: Mapping[str, Any], prefix: str = "") -> Setting:
    """The setting in stored values whose names begin with `prefix`."""
    return Setting(values.get(f"{prefix}enabled"), values.get(f"{prefix}style"))
