"""When each batch was committed; for older batches their batch time, which is the nearest known."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column, fill it, and index it by stream."""
    column = sa.Column("committed_at_ms", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    op.add_column("batches", column)
    op.execute("UPDATE batches SET committed_at_ms = clock_ms")
    op.create_index("ix_batches_stream_committed_at_ms", "batches", ["stream", "committed_at_ms"])
