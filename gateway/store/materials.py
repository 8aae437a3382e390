"""The tables of what mail is made from: files that were uploaded, and templates with their versions."""

import sqlalchemy as sa

from gateway.store.columns import column, key, metadata, number, text, time

uploads = sa.Table(
    "uploads",
    metadata,
    *key("tenant", "id"),
    text("key_id"),
    text("mailbox", null=True),
    text("filename"),
    text("content_type"),
    number("size"),
    text("sha256"),
    column("data", sa.LargeBinary),
    time("created_us"),
    time("expires_us"),
    sa.Index("uploads_expires", "expires_us"),
)
templates = sa.Table(
    "templates",
    metadata,
    *key("tenant", "id"),
    text("slug"),
    text("name"),
    text("type"),
    number("latest"),  # the newest version's number, 0 where there is none
    number("published", null=True),
    text("created_by"),
    time("created_us"),
    time("updated_us"),
    sa.UniqueConstraint("tenant", "slug", name="templates_slug"),
)
template_versions = sa.Table(
    "template_versions",
    metadata,
    *key("tenant", "template_id"),
    sa.Column("no", sa.BigInteger, primary_key=True, autoincrement=False),
    text("subject", null=True),
    text("html", null=True),
    text("text", null=True),
    text("variables", null=True),
    text("created_by"),
    time("created_us"),
)
