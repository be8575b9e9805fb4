"""The records that a stream ledger covers, and why they may be missing."""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.intent import OffsetRange


def select_topic(ledger: pa.Table, topic: str) -> pa.Table:
    """Return the rows of a topic."""
    return ledger.filter(pc.equal(ledger.column("topic"), topic))


def list_offset_ranges(ledger: pa.Table) -> tuple[OffsetRange, ...]:
    """Return the offset range of each partition that a ledger covers."""
    ledger_bounds = ledger.group_by(["topic", "partition"]).aggregate([("start", "min"), ("end", "max")])
    return tuple(
        OffsetRange(row["topic"], row["partition"], row["start_min"], row["end_max"])
        for row in ledger_bounds.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist()
    )


def explain_expired(topic: str) -> str:
    """Explain that neither the topic nor its archive has all records."""
    return f"some records of {topic} have expired, and no archive has them"


def explain_compacted(topic: str) -> str:
    """Explain that compaction removed records that batches have read."""
    return f"some records of {topic} were compacted away before they were archived"
