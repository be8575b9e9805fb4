"""Keep how many rows a batch gave to each table and topic."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; of batches from before nobody knows."""
    op.add_column("batches", sa.Column("given", sa.JSON, nullable=False, server_default=sa.text("'{}'")))
