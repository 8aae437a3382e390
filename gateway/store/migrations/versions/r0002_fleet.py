"""What agents settle among themselves and ask of people: votes, conflicts, invitations, decisions to confirm."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _number(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def upgrade() -> None:
    """Make the tables; leases that have run out before are told to nobody any more."""
    _votes()
    _conflicts()
    _people()
    op.execute("INSERT INTO marks (tenant, name, at_us) SELECT id, 'lease.expired', last_us FROM tenants")


def _votes() -> None:
    op.create_table(
        "consensus",
        *(_text(n) for n in ("tenant", "id", "requested_by", "action", "contact", "address", "reason", "status")),
        _number("timeout_us"),
        _number("created_us"),
        _number("decided_us", null=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("consensus_newest", "consensus", ["tenant", "created_us", "id"])
    pending = sa.text("status = 'pending'")
    op.create_index("consensus_open", "consensus", ["timeout_us"], postgresql_where=pending, sqlite_where=pending)
    op.create_table(
        "votes",
        *(_text(n) for n in ("tenant", "consensus", "agent", "id", "vote")),
        _text("reason", null=True),
        _number("created_us"),
        sa.PrimaryKeyConstraint("tenant", "consensus", "agent"),
    )
    op.create_table(
        "awaited",
        *(_text(n) for n in ("tenant", "consensus", "send_id")),
        sa.PrimaryKeyConstraint("tenant", "consensus", "send_id"),
    )


def _conflicts() -> None:
    op.create_table(
        "conflicts",
        *(_text(n) for n in ("tenant", "subject", "actor", "send_id")),
        _number("at_us"),
        sa.PrimaryKeyConstraint("tenant", "subject", "actor", "send_id"),
    )
    op.create_index("conflicts_at", "conflicts", ["at_us"])
    op.create_table(
        "marks", _text("tenant"), _text("name"), _number("at_us"), sa.PrimaryKeyConstraint("tenant", "name")
    )


def _people() -> None:
    op.create_table(
        "invites",
        *(_text(n) for n in ("tenant", "id", "prefix", "hash", "label", "scopes")),
        _text("mailboxes", null=True),
        _text("agent", null=True),
        _number("per_minute", null=True),
        _text("status"),
        _text("key_id", null=True),
        _text("created_by"),
        _number("created_us"),
        _number("expires_us"),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sa.UniqueConstraint("hash", name="invites_hash"),
    )
    asked = ("digest", "kind", "about", "loosens", "method", "path", "query", "body", "asked_by", "actor", "status")
    op.create_table(
        "human_decisions",
        *(_text(n) for n in ("tenant", "id", *asked)),
        _number("created_us"),
        _number("expires_us"),
        _number("decided_us", null=True),
        _text("decided_by", null=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("human_decisions_newest", "human_decisions", ["tenant", "created_us"])
    op.create_index("human_decisions_digest", "human_decisions", ["tenant", "digest"])
