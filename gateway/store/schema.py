"""Every table. Times are integer microseconds since 1970 (UTC), flags are 0 or 1, documents are JSON text.

Every primary key begins with the tenant, so that tables can be spread by tenant; bodies have a table of their own and are
written once.
"""

import sqlalchemy as sa

from gateway.store import fleet, materials
from gateway.store.columns import column as _column
from gateway.store.columns import key as _key
from gateway.store.columns import metadata
from gateway.store.columns import number as _number
from gateway.store.columns import text as _text
from gateway.store.columns import time as _time

__all__ = ["metadata"]

uploads, templates, template_versions = materials.uploads, materials.templates, materials.template_versions
consensus, votes, awaited, conflicts, marks = fleet.consensus, fleet.votes, fleet.awaited, fleet.conflicts, fleet.marks
invites, human_decisions = fleet.invites, fleet.human_decisions
clock = sa.Table(
    "clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _time("offset_us"),
    _number("relay_paused"),
)
tenants = sa.Table("tenants", metadata, *_key("id"), _time("last_us"), _text("profile"), _time("created_us"))
epochs = sa.Table(
    "epochs", metadata, *_key("id"), _text("host"), _number("beat"), _number("group_no"), _time("seen_us")
)
mailboxes = sa.Table(
    "mailboxes",
    metadata,
    *_key("tenant", "id"),
    _text("address"),
    _text("key"),
    _text("display_name", null=True),
    _text("status"),
    _text("options"),
    _time("created_us"),
    _time("updated_us"),
    sa.UniqueConstraint("tenant", "key", name="mailboxes_key"),
    sa.Index("mailboxes_address", "key"),
)
agents = sa.Table(
    "agents",
    metadata,
    *_key("tenant", "id"),
    _text("name"),
    _text("role"),
    _text("metadata"),
    _text("options"),
    _time("created_us"),
    _time("heartbeat_us"),
    sa.UniqueConstraint("tenant", "name", name="agents_name"),
)
api_keys = sa.Table(
    "api_keys",
    metadata,
    *_key("tenant", "id"),
    _text("prefix"),
    _text("hash"),
    _text("label"),
    _text("scopes"),
    _text("mailboxes", null=True),
    _text("agent", null=True),
    _number("transactional"),
    _text("status"),
    _time("created_us"),
    _time("used_us", null=True),
    _text("created_by", null=True),
    _number("per_minute", null=True),
    sa.UniqueConstraint("hash", name="api_keys_hash"),
)
contacts = sa.Table(
    "contacts",
    metadata,
    *_key("tenant", "key"),
    _text("lease_id"),
    _text("owner"),
    _number("token"),
    _number("foreign_token"),
    _text("intent"),
    _text("address"),
    _time("acquired_us"),
    _time("expires_us"),
    _time("last_us", null=True),
    _text("last_by"),
    sa.Index("contacts_lease", "tenant", "lease_id"),
    sa.Index("contacts_expires", "tenant", "expires_us"),
)
suppressions = sa.Table(
    "suppressions",
    metadata,
    *_key("tenant", "id"),
    _text("subject"),  # a person key (has an @) or a domain (has none)
    _text("address"),
    _text("scope"),
    _text("campaign"),
    _text("reason_code"),
    _text("source"),
    _text("created_by"),
    _time("created_us"),
    _time("expires_us", null=True),
    sa.UniqueConstraint("tenant", "subject", "campaign", name="suppressions_subject"),
    sa.Index("suppressions_newest", "tenant", "created_us"),
)
whole_domain = sa.func.replace(suppressions.c.subject, sa.literal_column("'@'"), sa.literal_column("''")) == (
    suppressions.c.subject
)
sa.Index(
    "suppressions_domains",
    suppressions.c.tenant,
    suppressions.c.created_us,
    postgresql_where=whole_domain,
    sqlite_where=whole_domain,
)
people = sa.Table(
    "people",
    metadata,
    *_key("tenant", "id"),
    _text("key"),
    _text("address"),
    _text("external_id", null=True),
    _text("name", null=True),
    _text("lifecycle_stage", null=True),
    _text("deal_stage", null=True),
    _text("metadata"),
    _time("created_us"),
    _time("updated_us"),
    sa.UniqueConstraint("tenant", "external_id", name="people_external_id"),
    sa.UniqueConstraint("tenant", "key", name="people_key"),
)
consents = sa.Table(
    "consents",
    metadata,
    *_key("tenant", "key"),
    sa.Column("no", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("id"),
    _text("address"),
    _text("basis"),
    _text("source", null=True),
    _text("jurisdiction", null=True),
    _text("created_by"),
    _time("granted_us"),
    _time("revoked_us", null=True),
    _time("created_us"),
)
sends = sa.Table(
    "sends",
    metadata,
    *_key("tenant", "id"),
    _text("mailbox"),
    _text("agent", null=True),
    _text("key_id", null=True),
    _text("actor"),
    _text("idem_key"),
    _text("idem_slot", null=True),
    _time("idem_until_us", null=True),
    _text("fingerprint"),
    _text("digest"),
    _text("kind"),
    _text("campaign", null=True),
    _text("thread", null=True),
    _text("tokens"),
    _text("reverse_path", null=True),
    _text("header_from"),
    _text("subject"),
    _text("message_id"),
    _text("in_reply_to", null=True),
    _column("sketch", sa.LargeBinary),
    _number("size"),
    _time("not_before_us", null=True),
    _text("door"),
    _text("send_reason", null=True),
    _text("template", null=True),  # id:version
    _text("override", null=True),
    _text("approved"),
    _time("created_us"),
    _time("decided_us"),
    _number("decision_no"),
    _number("repeats"),
    sa.UniqueConstraint("tenant", "mailbox", "idem_slot", name="sends_idempotency"),
    sa.Index("sends_message_id", "tenant", "message_id"),
    sa.Index("sends_newest", "tenant", "created_us", "id"),
)
contents = sa.Table("contents", metadata, *_key("tenant", "send_id"), _column("body", sa.LargeBinary))
deliveries = sa.Table(
    "deliveries",
    metadata,
    *_key("tenant", "id"),
    _text("send_id"),
    _text("contact"),
    _text("address"),
    _text("role"),
    _number("internal"),
    _text("kind"),
    _text("mailbox"),
    _text("actor"),
    _text("thread", null=True),
    _text("digest"),
    _text("state"),
    _number("claim_no"),
    _text("epoch"),
    _time("due_us"),
    _time("created_us"),
    _time("since_us", null=True),
    _time("judged_us"),
    _time("not_before_us", null=True),
    _number("attempts"),
    _number("tried"),
    _number("assumed"),
    _text("dsn"),
    _text("forbidden"),
    _text("reason"),
    _text("detail"),
    _number("code"),
    _text("enhanced"),
    _text("text"),
    _time("permitted_us", null=True),
    _time("changed_us"),
)


def _states(*names: str) -> sa.ColumnElement[bool]:
    return deliveries.c.state.in_([sa.literal_column(f"'{name}'") for name in names])


# Partial indexes keep the few rows that move apart from the history. A statement that wants one must carry the very same
# expression (SQLite proves no subsets): hence the names.
sa.Index("deliveries_send", deliveries.c.tenant, deliveries.c.send_id)
live = _states("queued", "claimed", "permitted", "unknown")
sa.Index("deliveries_live", deliveries.c.tenant, deliveries.c.contact, postgresql_where=live, sqlite_where=live)
due = _states("queued", "scheduled")
sa.Index("deliveries_due", deliveries.c.due_us, deliveries.c.id, postgresql_where=due, sqlite_where=due)
taken = _states("claimed", "permitted")
sa.Index("deliveries_epoch", deliveries.c.epoch, postgresql_where=taken, sqlite_where=taken)
open_ = _states("held", "unknown")
sa.Index("deliveries_open", deliveries.c.changed_us, postgresql_where=open_, sqlite_where=open_)
threaded = deliveries.c.thread.is_not(None)
sa.Index("deliveries_recent", deliveries.c.tenant, deliveries.c.contact, deliveries.c.since_us)
about = (deliveries.c.tenant, deliveries.c.thread, deliveries.c.since_us)
sa.Index("deliveries_thread", *about, postgresql_where=threaded, sqlite_where=threaded)
attempts = sa.Table(
    "attempts",
    metadata,
    *_key("tenant", "delivery_id"),
    sa.Column("claim_no", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("epoch"),
    _time("started_us"),
    _time("permitted_us", null=True),
    _time("ended_us", null=True),
    _text("outcome"),
    _number("code"),
    _text("enhanced"),
    _text("text"),
)
decisions = sa.Table(
    "decisions",
    metadata,
    *_key("tenant", "send_id"),
    sa.Column("no", sa.BigInteger, primary_key=True, autoincrement=False),
    _time("at_us"),
    _text("moment"),
    _text("verdict"),
    _text("reason"),
    _text("document"),
)
counters = sa.Table(
    "counters",
    metadata,
    *_key("tenant", "slot"),  # scope/who/window/start
    _number("used"),
)
alarms = sa.Table("alarms", metadata, *_key("tenant", "name", "subject"), _time("quiet_us"))  # quiet until then
events = sa.Table(
    "events",
    metadata,
    *_key("tenant", "id"),
    _text("name"),
    _time("at_us"),
    _text("send_id"),
    _text("contact"),
    _text("actor"),
    _text("data"),
    sa.Index("events_send", "tenant", "send_id"),
)
