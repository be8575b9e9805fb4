"""Keep under which lease it was said how a stream is doing."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column; of what was said before nobody knows."""
    op.add_column("health", sa.Column("epoch", sa.BigInteger, nullable=False, server_default=sa.text("0")))
