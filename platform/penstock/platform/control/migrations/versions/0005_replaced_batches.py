"""Keep batches that a replay replaced, marked: Dagster may not have been told of them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the mark; what was replaced before is gone."""
    op.add_column("batches", sa.Column("replaced", sa.Boolean, nullable=False, server_default=sa.false()))
