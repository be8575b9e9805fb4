"""State rows with readable names, ISO times and no sentinel values."""

import pyarrow as pa
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, run_batches

from penstock.engine.batch.state_inspection import decode_packed_columns, read_state_at
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.platform.cli.state_view import to_readable_rows

ROWS = pa.table(
    {
        "device": ["a"],
        "unshown": [2],
        "trigger_1_timer": [MAX_TIMESTAMP_MS],
        "trigger_2_timer": [1_767_225_600_000],
        "newest": [MIN_TIMESTAMP_MS],
        "shown_temperature_present": pa.array([None], pa.int64()),
        "total": [1630.6100000000001],
        "past_end": [False],
    }
)


def test_rows_have_readable_names_and_times() -> None:
    columns, rows = to_readable_rows(ROWS, ["device"])
    assert dict(zip(columns, rows[0], strict=True)) == {
        "device": "a",
        "new records": 2,
        "trigger 1 timer": "never",
        "trigger 2 timer": "2026-01-01T00:00:00.000Z",
        "newest event": "never",
        "last pane: temperature present": "-",
        "total": "1630.61",
        "watermark passed end": "no",
    }


def test_json_has_null_for_what_is_not_set() -> None:
    columns, rows = to_readable_rows(ROWS, ["device"], as_json=True)
    row = dict(zip(columns, rows[0], strict=True))
    assert (row["trigger_1_timer"], row["newest_event"], row["watermark_passed_end"]) == (None, None, False)
    assert row["trigger_2_timer"] == "2026-01-01T00:00:00.000Z"


def test_no_state_shows_a_sentinel(tmp_path) -> None:
    for name in ("fixed", "two stages", "stateful function", "vectorized function"):
        bench = Bench(PLANS[name], tmp_path / name.replace(" ", "-"))
        run_batches(bench)
        for snapshot in read_state_at(bench.folder / "stream").values():
            stored = decode_packed_columns(snapshot.read_table())
            columns, rows = to_readable_rows(stored, snapshot.key_fields)
            text = str((columns, rows))
            assert str(MAX_TIMESTAMP_MS) not in text
            assert str(MIN_TIMESTAMP_MS) not in text
            assert "_" not in "".join(columns)
