"""What the tables of each folder hold, and what their columns mean.

Delta tables, Dagster's assets, `penstock table show --help` and the page `pipelines/docs/which_rows_count.md` have
these texts. Nothing else defines them.
"""

from collections.abc import Mapping
from types import MappingProxyType

TABLE_DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "latest": "One row per key and window: the current value. Read this one. A new pane replaces the row; "
        "a retracted or replaced window has no row.",
        "complete": "The complete result in one file: one row per key and window, the current value. "
        "Each batch with changes rewrites the file.",
        "final": "One row per key and window, appended when the window closes. Rows never change. "
        "Open windows have no row yet.",
        "panes": "The log: every pane as one row or several, in the order of the batches. Rows never change. "
        "A window has several panes, so do not sum all rows.",
        "late": "Records that came after their window had closed. No result contains them.",
        "quarantine": "Invalid records, with the reason. No result contains them.",
        "ledger": "What became of the records: one row per batch and partition. "
        "read = accepted + late + quarantined + duplicate + filtered.",
        "checks": "How many records of each batch violate a check of the topic.",
        "lookups": "The versions of lookup tables that each batch read.",
        "erasures": "Which erasures a stream carried out. The erased key itself is not stored.",
        "raw": "The archive of a topic: each record as the broker has it.",
    }
)
"""What a table holds, by its folder in the warehouse."""

KEY_COMMENT = "part of the key"

PANE_COMMENTS: Mapping[str, str] = MappingProxyType(
    {
        "window_start": "start of the window (inclusive)",
        "window_end": "end of the window (exclusive)",
        "pane": "number of the pane of its key and window: 0 for the first result, then 1, 2, …",
        "timing": "early: before the watermark passes the end of the window; on_time: when it passes; "
        "late: after it",
        "on_time_index": "-1 for early panes, then 0, 1, …",
        "final": "whether it is the last pane of the window; no other one follows",
        "kind": "insert: this value counts now; retract: this value counted before and no longer does; "
        "replaced: the session is part of a longer one",
        "records": "number of records in the pane",
        "batch_id": "ID of the batch that wrote the row; each table has all rows of a batch or none",
        "batch_clock": "batch time",
        "watermark": "the watermark after the batch",
        "replaced_by_start": "start of the session that it was merged into",
        "replaced_by_end": "end of that session (exclusive)",
        "window_number": "number of the window of its key, from 0",
    }
)
"""The columns of results after the key and the values."""

_ADDRESS_COMMENTS = {
    "topic": "topic of the record",
    "partition": "partition of the record",
    "offset": "offset of the record in its partition",
}
_BATCH_COMMENTS = {name: PANE_COMMENTS[name] for name in ("batch_id", "batch_clock")}
_RANGE_COMMENTS = {
    "topic": "topic of the records",
    "partition": "partition of the records",
    "start": "first offset that the batch read",
    "end": "offset after the last one that the batch read",
}

RECORD_TABLE_COMMENTS: Mapping[str, Mapping[str, str]] = {
    "late": {
        **_ADDRESS_COMMENTS,
        "event_time": "event time of the record",
        "window_start": PANE_COMMENTS["window_start"],
        "window_end": PANE_COMMENTS["window_end"],
        "watermark": "the watermark before the batch, which had passed the window",
        "missed_by_ms": "milliseconds between the closing of the window and that watermark",
        "reason": "closed: after the allowed lateness; finished: the trigger emits no more panes; "
        "no_window: no window takes it",
        "record": "the record as JSON",
        **_BATCH_COMMENTS,
    },
    "quarantine": {
        **_ADDRESS_COMMENTS,
        "arrived": "time of the record at the broker",
        "key": "key of the record as bytes",
        "value": "value of the record as bytes",
        "reason": "code of the fault, with the field",
        "stream": "stream that refused the record; each stream that reads a topic writes its own rows",
        "contract": "version of the contract that refused the record",
        **_BATCH_COMMENTS,
    },
    "ledger": {
        **_RANGE_COMMENTS,
        "read": "number of records that the batch read",
        "accepted": "records that at least one window took",
        "late": "records that came too late for all their windows",
        "quarantined": "invalid records",
        "duplicate": "records whose id was read before",
        "filtered": "records that the steps of the pipeline removed",
        "records": "number of records that the batch archived",
        "gaps": "offsets without a record, and why",
        **_BATCH_COMMENTS,
    },
    "checks": {
        "topic": "topic of the records",
        "check": "the check",
        "action": "what happens to a record that violates it",
        "records": "number of records that violate it",
        **_BATCH_COMMENTS,
    },
    "lookups": {
        **_RANGE_COMMENTS,
        "table": "the lookup table",
        "version": "version of that table",
        **_BATCH_COMMENTS,
    },
    "erasures": {
        "stage": "stage of the stream",
        "fields": "fields of the key",
        "key_digest": "digest by which a holder of the key finds the row",
        "asked_by": "user who requested the erasure",
        "windows": "number of windows of the key",
        "rewritten": "whether results of the stage were rewritten",
        **_BATCH_COMMENTS,
    },
    "raw": {
        "partition": _ADDRESS_COMMENTS["partition"],
        "offset": _ADDRESS_COMMENTS["offset"],
        "timestamp": "timestamp of the record",
        "timestamp_type": "create: the producer set the timestamp; append: the broker did",
        "key": "key of the record as bytes",
        "value": "value of the record as bytes; null deletes the key in a compacted topic",
        "headers": "headers of the record",
        "day": "day of archiving, UTC",
        "batch_id": PANE_COMMENTS["batch_id"],
    },
}
"""The columns of the tables about records and batches, by folder."""
