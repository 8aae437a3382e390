"""The tables of what agents settle among themselves and ask of people: votes, conflicts, invitations, decisions to confirm."""

import sqlalchemy as sa

from gateway.store.columns import key, metadata, number, text, time

consensus = sa.Table(
    "consensus",
    metadata,
    *key("tenant", "id"),
    text("requested_by"),
    text("action"),
    text("contact"),
    text("address"),
    text("reason"),
    text("status"),  # pending | approved | rejected | expired
    time("timeout_us"),
    time("created_us"),
    time("decided_us", null=True),
    sa.Index("consensus_newest", "tenant", "created_us", "id"),
)
pending = consensus.c.status == sa.literal_column("'pending'")
sa.Index("consensus_open", consensus.c.timeout_us, postgresql_where=pending, sqlite_where=pending)
votes = sa.Table(
    "votes",
    metadata,
    *key("tenant", "consensus", "agent"),
    text("id"),
    text("vote"),  # approve | reject
    text("reason", null=True),
    time("created_us"),
)
awaited = sa.Table(
    "awaited", metadata, *key("tenant", "consensus", "send_id")
)  # the sends that a consensus holds or held
conflicts = sa.Table(
    "conflicts",  # sends that were refused because another agent had the contact; a subject is a person key or a thread
    metadata,
    *key("tenant", "subject", "actor", "send_id"),
    time("at_us"),
    sa.Index("conflicts_at", "at_us"),
)
marks = sa.Table("marks", metadata, *key("tenant", "name"), time("at_us"))  # up to when something has been seen to
invites = sa.Table(
    "invites",
    metadata,
    *key("tenant", "id"),
    text("prefix"),
    text("hash"),
    text("label"),
    text("scopes"),
    text("mailboxes", null=True),
    text("agent", null=True),  # the name of the agent that the claimed key is to act as
    number("per_minute", null=True),
    text("status"),  # pending | claimed | revoked
    text("key_id", null=True),
    text("created_by"),
    time("created_us"),
    time("expires_us"),
    sa.UniqueConstraint("hash", name="invites_hash"),
)
human_decisions = sa.Table(
    "human_decisions",  # requests that only a person may carry out, as they were asked
    metadata,
    *key("tenant", "id"),
    text("digest"),  # of who asked for what: the same wish is kept once
    text("kind"),
    text("about"),
    text("loosens"),
    text("method"),
    text("path"),
    text("query"),
    text("body"),
    text("asked_by"),
    text("actor"),
    text("status"),  # pending | confirmed | rejected
    time("created_us"),
    time("expires_us"),
    time("decided_us", null=True),
    text("decided_by", null=True),
    sa.Index("human_decisions_newest", "tenant", "created_us"),
    sa.Index("human_decisions_digest", "tenant", "digest"),
)
