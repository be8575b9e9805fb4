"""How long each replay took, from which the next one is estimated."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "replays",
        sa.Column("stream", sa.String(200), nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("start_seconds", sa.Float, nullable=False),
        sa.Column("estimated_seconds", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("stream", "finished_at_ms", name="pk_replays"),
    )
