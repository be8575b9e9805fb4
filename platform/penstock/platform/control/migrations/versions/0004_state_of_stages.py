"""Keep how much each stage of a stream keeps after a batch."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column; of batches from before nobody knows."""
    op.add_column("batches", sa.Column("state", sa.JSON, nullable=False, server_default=sa.text("'{}'")))
