"""The schemas of the tables about single records: quarantine, ledger, and late records."""

import pyarrow as pa

from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE

ADDRESS_FIELDS = (
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
)
QUARANTINED_RECORD_SCHEMA = pa.schema(
    [
        *ADDRESS_FIELDS,
        pa.field("arrived", TIMESTAMP_TYPE),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("reason", pa.string()),
    ]
)
"""An invalid record: its address, its bytes, and the reason."""

QUARANTINE_SCHEMA = pa.schema(
    [*QUARANTINED_RECORD_SCHEMA, pa.field("stream", pa.string()), pa.field("contract", pa.string())]
)
"""The quarantine table of a topic, which several streams may write: the stream and contract that rejected it."""

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.int64()) for name in ("start", "end", "read", "accepted", "late", "quarantined")),
        *(pa.field(name, pa.int64()) for name in ("duplicate", "filtered")),
    ]
)
"""The account of each batch for a partition, offsets [start, end)."""


def late_record_schema(stage: CompiledStage) -> pa.Schema:
    """Return the schema of late records: address, window, and by how much the record missed it."""
    return pa.schema(
        [
            *ADDRESS_FIELDS,
            *stage.key,
            pa.field("event_time", TIMESTAMP_TYPE),
            pa.field("window_start", TIMESTAMP_TYPE),
            pa.field("window_end", TIMESTAMP_TYPE),
            pa.field("watermark", TIMESTAMP_TYPE),
            pa.field("missed_by_ms", pa.int64()),
            pa.field("reason", pa.string()),
            pa.field("record", pa.string()),
        ]
    )
