"""The control store's tables. Times are milliseconds of UTC. Every change here needs a migration."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
    text,
)

metadata = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(column_0_label)s", "uq": "uq_%(table_name)s"}
)

streams = Table(
    "streams",
    metadata,
    Column("stream", String(200), primary_key=True),
    Column("desired", String(20), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("stream", String(200), primary_key=True),
    Column("holder", String(200), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
)

health = Table(
    "health",
    metadata,
    Column("stream", String(200), primary_key=True),
    Column("state", String(40), nullable=False),
    Column("reason", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False, server_default=text("0")),
)

backlogs = Table(
    "backlogs",
    metadata,
    Column("stream", String(200), primary_key=True),
    Column("batch_id", BigInteger, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
)

hosts = Table(
    "hosts",
    metadata,
    Column("host", String(200), primary_key=True),
    Column("address", String(200), nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("stream", String(200), primary_key=True),
    Column("batch_id", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("clock_ms", BigInteger, nullable=False),
    Column("committed_at_ms", BigInteger, nullable=False, server_default=text("0")),
    Column("watermark_ms", BigInteger),
    Column("accounts", JSON, nullable=False),
    # Sums of the accounts, so that a summary of many batches reads numbers and parses nothing.
    Column("read", BigInteger, nullable=False),
    Column("accepted", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
    Column("quarantined", BigInteger, nullable=False),
    Column("duplicate", BigInteger, nullable=False),
    Column("filtered", BigInteger, nullable=False),
    Column("panes_early", BigInteger, nullable=False),
    Column("panes_on_time", BigInteger, nullable=False),
    Column("panes_late", BigInteger, nullable=False),
    Column("panes_retract", BigInteger, nullable=False),
    Column("panes_replaced", BigInteger, nullable=False, server_default=text("0")),
    Column("rows", BigInteger, nullable=False),
    Column("lag_records", BigInteger, nullable=False),
    Column("duration_ms", Float, nullable=False),
    Column("durations_ms", JSON, nullable=False),
    Column("state_rows", BigInteger, nullable=False, server_default=text("0")),
    Column("state", JSON, nullable=False, server_default=text("'{}'")),
    Column("result_rows", JSON, nullable=False, server_default=text("'{}'")),
    # A replay has replaced the results of the batch. Dagster may not have seen the batch yet.
    Column("replaced", Boolean, nullable=False, server_default=false()),
    Index("ix_batches_stream_committed_at_ms", "stream", "committed_at_ms"),
)

replays = Table(
    "replays",
    metadata,
    Column("stream", String(200), primary_key=True),
    Column("finished_at_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("records", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("start_seconds", Float, nullable=False),
    Column("estimated_seconds", Float, nullable=False),
)
