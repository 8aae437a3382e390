"""The first schema: registry, contacts, suppressions, sends, deliveries, attempts, decisions, counters, events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables and the clock's only row."""
    op.create_table(
        "agents",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("tenant", "name", name="agents_name"),
    )
    op.create_table(
        "alarms",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("quiet_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", "subject"),
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("mailboxes", sa.Text(), nullable=True),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("transactional", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("used_us", sa.BigInteger(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("per_minute", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("hash", name="api_keys_hash"),
    )
    op.create_table(
        "attempts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("claim_no", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("permitted_us", sa.BigInteger(), nullable=True),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("code", sa.BigInteger(), nullable=False),
        sa.Column("enhanced", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "delivery_id", "claim_no"),
    )
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("offset_us", sa.BigInteger(), nullable=False),
        sa.Column("relay_paused", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "consents",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("no", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("jurisdiction", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("granted_us", sa.BigInteger(), nullable=False),
        sa.Column("revoked_us", sa.BigInteger(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", "no"),
    )
    op.create_table(
        "contacts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("lease_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("foreign_token", sa.BigInteger(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("acquired_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=True),
        sa.Column("last_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key"),
    )
    op.create_index("contacts_expires", "contacts", ["tenant", "expires_us"], unique=False)
    op.create_index("contacts_lease", "contacts", ["tenant", "lease_id"], unique=False)
    op.create_table(
        "contents",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("send_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "send_id"),
    )
    op.create_table(
        "counters",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("slot", sa.Text(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "slot"),
    )
    op.create_table(
        "decisions",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("send_id", sa.Text(), nullable=False),
        sa.Column("no", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("moment", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "send_id", "no"),
    )
    op.create_table(
        "deliveries",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("send_id", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("internal", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("claim_no", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=True),
        sa.Column("judged_us", sa.BigInteger(), nullable=False),
        sa.Column("not_before_us", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("tried", sa.BigInteger(), nullable=False),
        sa.Column("assumed", sa.BigInteger(), nullable=False),
        sa.Column("dsn", sa.Text(), nullable=False),
        sa.Column("forbidden", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("code", sa.BigInteger(), nullable=False),
        sa.Column("enhanced", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("permitted_us", sa.BigInteger(), nullable=True),
        sa.Column("changed_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index(
        "deliveries_due",
        "deliveries",
        ["due_us", "id"],
        unique=False,
        postgresql_where=sa.text("state IN ('queued', 'scheduled')"),
        sqlite_where=sa.text("state IN ('queued', 'scheduled')"),
    )
    op.create_index(
        "deliveries_epoch",
        "deliveries",
        ["epoch"],
        unique=False,
        postgresql_where=sa.text("state IN ('claimed', 'permitted')"),
        sqlite_where=sa.text("state IN ('claimed', 'permitted')"),
    )
    op.create_index(
        "deliveries_live",
        "deliveries",
        ["tenant", "contact"],
        unique=False,
        postgresql_where=sa.text("state IN ('queued', 'claimed', 'permitted', 'unknown')"),
        sqlite_where=sa.text("state IN ('queued', 'claimed', 'permitted', 'unknown')"),
    )
    op.create_index(
        "deliveries_open",
        "deliveries",
        ["changed_us"],
        unique=False,
        postgresql_where=sa.text("state IN ('held', 'unknown')"),
        sqlite_where=sa.text("state IN ('held', 'unknown')"),
    )
    op.create_index("deliveries_recent", "deliveries", ["tenant", "contact", "since_us"], unique=False)
    op.create_index("deliveries_send", "deliveries", ["tenant", "send_id"], unique=False)
    op.create_index(
        "deliveries_thread",
        "deliveries",
        ["tenant", "thread", "since_us"],
        unique=False,
        postgresql_where=sa.text("thread IS NOT NULL"),
        sqlite_where=sa.text("thread IS NOT NULL"),
    )
    op.create_table(
        "epochs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("group_no", sa.BigInteger(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "events",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("send_id", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("events_send", "events", ["tenant", "send_id"], unique=False)
    op.create_table(
        "mailboxes",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("tenant", "key", name="mailboxes_key"),
    )
    op.create_index("mailboxes_address", "mailboxes", ["key"], unique=False)
    op.create_table(
        "people",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("lifecycle_stage", sa.Text(), nullable=True),
        sa.Column("deal_stage", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("tenant", "external_id", name="people_external_id"),
        sa.UniqueConstraint("tenant", "key", name="people_key"),
    )
    op.create_table(
        "sends",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("idem_key", sa.Text(), nullable=False),
        sa.Column("idem_slot", sa.Text(), nullable=True),
        sa.Column("idem_until_us", sa.BigInteger(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("campaign", sa.Text(), nullable=True),
        sa.Column("thread", sa.Text(), nullable=True),
        sa.Column("tokens", sa.Text(), nullable=False),
        sa.Column("reverse_path", sa.Text(), nullable=True),
        sa.Column("header_from", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("in_reply_to", sa.Text(), nullable=True),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("not_before_us", sa.BigInteger(), nullable=True),
        sa.Column("door", sa.Text(), nullable=False),
        sa.Column("send_reason", sa.Text(), nullable=True),
        sa.Column("template", sa.Text(), nullable=True),
        sa.Column("override", sa.Text(), nullable=True),
        sa.Column("approved", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("decided_us", sa.BigInteger(), nullable=False),
        sa.Column("decision_no", sa.BigInteger(), nullable=False),
        sa.Column("repeats", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("tenant", "mailbox", "idem_slot", name="sends_idempotency"),
    )
    op.create_index("sends_message_id", "sends", ["tenant", "message_id"], unique=False)
    op.create_index("sends_newest", "sends", ["tenant", "created_us", "id"], unique=False)
    op.create_table(
        "suppressions",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("campaign", sa.Text(), nullable=False),
        sa.Column("reason_code", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("tenant", "subject", "campaign", name="suppressions_subject"),
    )
    op.create_index(
        "suppressions_domains",
        "suppressions",
        ["tenant", "created_us"],
        unique=False,
        postgresql_where=sa.text("replace(subject, '@', '') = subject"),
        sqlite_where=sa.text("replace(subject, '@', '') = subject"),
    )
    op.create_index("suppressions_newest", "suppressions", ["tenant", "created_us"], unique=False)
    op.create_table(
        "template_versions",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("template_id", sa.Text(), nullable=False),
        sa.Column("no", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("html", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("variables", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "template_id", "no"),
    )
    op.create_table(
        "templates",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("latest", sa.BigInteger(), nullable=False),
        sa.Column("published", sa.BigInteger(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("tenant", "slug", name="templates_slug"),
    )
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "uploads",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=True),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("uploads_expires", "uploads", ["expires_us"], unique=False)
    op.execute("INSERT INTO clock (id, offset_us, relay_paused) VALUES (1, 0, 0)")
