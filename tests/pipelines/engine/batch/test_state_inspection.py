"""The state of a stream is inspected as the engine has it, at any retained batch."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, make_batches, run_batches

from penstock.engine.batch.state_inspection import (
    decode_packed_columns,
    list_available_batches,
    match_key,
    read_state_at,
    select_key_rows,
)
from penstock.engine.errors import JournalError
from penstock.engine.operators.stateful.state_encoding import encode_state


def test_each_open_window_is_in_the_state_once(tmp_path: Path) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    run_batches(bench)
    directory = tmp_path / "stream"
    assert list_available_batches(directory) == [batch.id for batch in make_batches()]
    rows = read_state_at(directory, 2)["stream"].read_table().to_pylist()
    found = sorted((row["key"], row["window_start"].timestamp() * 1000, row["records"]) for row in rows)
    assert found == [("a", 0.0, 2), ("a", 10.0, 1), ("b", 0.0, 1), ("c", 10.0, 1)]
    assert select_key_rows(read_state_at(directory, 2)["stream"], {"key": "b"}).num_rows == 1


def test_every_stage_is_listed_and_encoded_state_is_decoded(tmp_path: Path) -> None:
    chained, stateful = (Bench(PLANS[name], tmp_path / name) for name in ("two stages", "stateful function"))
    for bench in (chained, stateful):
        run_batches(bench)
    assert list(read_state_at(chained.folder / "stream")) == ["stream", "whole"]
    rows = decode_packed_columns(read_state_at(stateful.folder / "stream")["stream"].read_table()).to_pylist()
    assert {row["key"]: row["function_state"] for row in rows} == {
        "a": '{"n":6,"total":17}',
        "b": '{"n":1,"total":1}',
        "c": '{"n":2,"total":18}',
    }


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({("a", 1): {2: "x"}}, {'["a",1]': {"2": "x"}}),
        ({True: 1, None: 2, "b": 3}, {"true": 1, "null": 2, "b": 3}),
        ([float("nan"), {"up": float("inf")}, 1.5], ["NaN", {"up": "Infinity"}, 1.5]),
    ],
)
def test_any_state_of_a_function_can_be_read(state: object, expected: object) -> None:
    rows = decode_packed_columns(
        pa.table({"function_state": pa.array([encode_state(state), None], pa.binary())})
    )
    found, missing = rows.column("function_state").to_pylist()
    assert (json.loads(found), missing) == (expected, None)


def test_the_state_of_vectorized_functions_is_in_columns(tmp_path: Path) -> None:
    run_batches(Bench(PLANS["vectorized function"], tmp_path))
    rows = decode_packed_columns(read_state_at(tmp_path / "stream")["stream"].read_table()).to_pylist()
    found = {row["key"]: (row["function_state_records"], row["function_state_total"]) for row in rows}
    assert found == {"a": (6, 17), "b": (1, 1), "c": (2, 18)}
    assert {"window_start", "window_end"}.isdisjoint(rows[0])


def test_a_batch_that_is_not_retained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no batch is committed yet"):
        read_state_at(tmp_path)
    run_batches(Bench(PLANS["fixed"], tmp_path))
    with pytest.raises(JournalError, match=r"batch 77 is not retained\. Choose a batch from 0 to 5"):
        read_state_at(tmp_path / "stream", 77)
    snapshot = read_state_at(tmp_path / "stream")["stream"]
    for name in ("colour", "window_start", "total_sum"):
        with pytest.raises(JournalError, match=f"its key has no field '{name}'. Name one or more of: key"):
            select_key_rows(snapshot, {name: "red"})


def test_a_key_is_found_by_its_value_in_any_form() -> None:
    rows = pa.table({"number": [7, 8, None], "share": [1.0, 0.5, None], "yes": [True, False, None]})
    for key in (
        {"number": "07"},
        {"share": "1"},
        {"share": "1.0"},
        {"yes": "True"},
        {"number": "7", "yes": "true"},
    ):
        assert match_key(rows, key).to_pylist() == [True, False, False]
    with pytest.raises(JournalError, match="key number: 'seven' is not of type int64"):
        match_key(rows, {"number": "seven"})
