"""Asks about who sends: the mailbox and the agent, with what an operator has set for them and for the tenant."""

from dataclasses import dataclass

from gateway.core.asks import Ask


@dataclass(frozen=True, slots=True)
class MailboxAnswer:
    """The sending mailbox: `address_key` is its own person key; options as an operator set them.

    `cooldown` is the mailbox's own value in seconds, else the tenant's own; `None`: neither has one. `allowed` and
    `tenant_allowed` are the allow lists (core/allowlist) of mailbox and tenant; `None`: no list.
    """

    status: str  # active | paused | provisioning | missing
    address_key: str = ""
    demands: str = ""  # "" | lease | token | both: what a send must carry
    may_reply: bool = False
    transactional: bool = False
    cooldown: int | None = None
    allowed: frozenset[str] | None = None
    tenant_allowed: frozenset[str] | None = None
    require_consensus: bool = False


@dataclass(frozen=True, slots=True)
class MailboxAsk(Ask[MailboxAnswer]):
    """In which state is the mailbox, and what does it demand?"""

    mailbox: str

    @property
    def subject(self) -> str:
        """The mailbox's id."""
        return self.mailbox


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The sending agent: its name, empty where no such agent is registered, and its allow list; `None`: no list."""

    name: str = ""
    allowed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AgentAsk(Ask[AgentAnswer]):
    """What is this agent called, and to whom may it write?"""

    agent: str

    @property
    def subject(self) -> str:
        """The agent's id."""
        return self.agent
