"""Who submits: a name and an API key become an author, or the network that he comes from does (SEMANTICS 8, SMTP_TRUST)."""

import binascii
import hmac
from dataclasses import dataclass, field, replace

from gateway.doors.auth import Grant, acting
from gateway.doors.context import Context
from gateway.doors.refusal import Refusal
from gateway.doors.smtp.lines import Malformed

SEND = "send"


@dataclass(frozen=True, slots=True)
class Author:
    """Somebody who may submit, and the id of the agent as which he does; without a key he comes from a trusted network."""

    grant: Grant
    agent: str | None
    named: str = ""
    key: str = field(default="", repr=False)


async def log_in(context: Context, name: str, key: str) -> Author | None:
    """The author with this key, whose name is the key's prefix or the agent's; `None` whatever is wrong about it.

    Raises StoreUnavailableError.
    """
    try:
        grant = await context.auth.grant(key)
        grant.need(SEND)
        if hmac.compare_digest(name.encode(), grant.prefix.encode()):
            return Author(grant, grant.agent, "", key)
        if not name:
            return None
        agent = await context.read(grant.tenant, lambda tx: acting(tx, grant, (name,)))
    except Refusal:
        return None
    return Author(grant, agent, agent or "", key)


async def still(context: Context, author: Author) -> Author:
    """The author as he stands now. Raises Refusal where he may not send any more, StoreUnavailableError."""
    if not author.key:
        return await of_network(context, author.named)
    grant = await context.auth.grant(author.key)
    grant.need(SEND)
    agent = grant.agent
    if author.named not in ("", agent):  # who was nobody's agent may have been given to another key since
        agent = await context.read(grant.tenant, lambda tx: acting(tx, grant, (author.named,)))
    return replace(author, grant=grant, agent=agent)


async def of_network(context: Context, agent: str) -> Author:
    """The author whom a trusted network stands for. Raises Refusal, StoreUnavailableError."""
    grant = await context.auth.trusted(agent)
    return Author(grant, grant.agent, agent)


async def speaking_as(context: Context, author: Author, named: str | None) -> str | None:
    """The id of the agent that a mail names in its header, by the rules of X-Agent-Id. Raises Refusal."""
    if named is None:
        return author.agent
    grant = replace(author.grant, agent=author.agent)
    return await context.read(grant.tenant, lambda tx: acting(tx, grant, (named,)))


# --- what AUTH says ---------------------------------------------------------------------------------------------------


def decoded(answer: bytes | str) -> bytes:
    """An answer to a challenge. Raises Malformed; `*` takes the whole attempt back (RFC 4954 4)."""
    if answer in (b"*", "*"):
        raise Malformed("501 5.7.0", "taken back")
    try:
        return binascii.a2b_base64(answer, strict_mode=True)
    except ValueError:
        raise Malformed("501 5.5.2", "that is not base64") from None


def plain(message: bytes) -> tuple[str, str]:
    """Name and key of a message of PLAIN (RFC 4616 2). Raises Malformed."""
    parts = message.split(b"\0")
    if len(parts) != 3:  # noqa: PLR2004  (authorisation, name, password)
        raise Malformed("501 5.5.2", "that is no message of PLAIN")
    identity, name, key = (text(part) for part in parts)
    if identity not in ("", name):  # nobody acts for another
        return name, ""
    return name, key


def text(data: bytes) -> str:
    """A name or a key; what is no text fits nothing."""
    return data.decode("utf-8", "replace")
