"""Keep which hosts there are and where they show their metrics, and how many rows of state a batch left."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table and the column; of batches from before nobody knows."""
    op.create_table(
        "hosts",
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("address", sa.String(200), nullable=False),
        sa.Column("began_at_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_hosts"),
    )
    op.add_column(
        "batches", sa.Column("state_rows", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    )
