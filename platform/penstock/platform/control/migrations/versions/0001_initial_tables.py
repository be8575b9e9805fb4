"""The initial tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BATCH_COUNTS = (
    *("read", "accepted", "late", "quarantined", "duplicate", "filtered"),
    *("panes_early", "panes_on_time", "panes_late", "panes_retract"),
    *("rows", "lag_records"),
)


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "streams",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("desired", sa.String(20), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_streams"),
    )
    op.create_table(
        "leases",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_leases"),
    )
    op.create_table(
        "health",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("state", sa.String(40), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("stream", name="pk_health"),
    )
    op.create_table(
        "backlogs",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_backlogs"),
    )
    op.create_table(
        "hosts",
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("address", sa.String(200), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_hosts"),
    )
    _create_batches()


def _create_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("batch_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("clock_ms", sa.BigInteger, nullable=False),
        sa.Column("watermark_ms", sa.BigInteger),
        sa.Column("accounts", sa.JSON, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in BATCH_COUNTS),
        sa.Column("panes_replaced", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("duration_ms", sa.Float, nullable=False),
        sa.Column("durations_ms", sa.JSON, nullable=False),
        sa.Column("state_rows", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("state", sa.JSON, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("result_rows", sa.JSON, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("replaced", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("stream", "batch_id", name="pk_batches"),
    )
