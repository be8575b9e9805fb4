"""Count the panes that a merged window replaced."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; batches from before it had none."""
    op.add_column(
        "batches", sa.Column("panes_replaced", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    )
