"""Keep which streams commit nothing while records wait for them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table; a host of this version fills it."""
    op.create_table(
        "waiting",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_waiting"),
    )
