"""Values compared with those that are computed again, and which of them can be."""

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.engine.batch.test_crashes import PLANS

from penstock.engine.plan import (
    AggregateOutput,
    Calendar,
    Column,
    Comparison,
    Deduplication,
    FilterStep,
    Fixed,
    Global,
    Join,
    JoinColumn,
    Plan,
    RowFunctionStep,
    Sessions,
    Sliding,
    SqlStep,
    Step,
    TimePolicy,
    Tumbling,
    function_ref,
)
from penstock.quality.audit.comparability import (
    Sample,
    can_multiply_records,
    comparison_for,
    explain_batch_dependence,
    explain_unsampleable,
    filter_final_windows,
)
from penstock.quality.audit.result_comparison import TableComparison, compare_results, latest_panes
from penstock.quality.audit.split_sessions import exclude_split_sessions, find_split_sessions
from penstock.stream import after_count, after_watermark, every, fixed, quantiles, repeatedly
from penstock.stream.join_columns import join_member_outputs

OF = TableComparison("latest/minutes", ["device", "window_start"], ["mean", "n"])
AT = "window_start 2026-01-01 12:00:00.000"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROWS = [
    {"device": "a", "window_start": NOON, "mean": 0.1 + 0.2, "n": 3},
    {"device": None, "window_start": NOON, "mean": None, "n": 1},
    {"device": "b", "window_start": NOON, "mean": float("nan"), "n": 2},
    {"device": "c", "window_start": NOON, "mean": float("inf"), "n": 2},
]
SCHEMA = pa.schema([("device", pa.string()), ("window_start", pa.timestamp("us", tz="UTC")),
                    ("mean", pa.float64()), ("n", pa.int64())])  # fmt: skip
WHOLE = Sample()


def rows(*changes: tuple[int, dict[str, object]]) -> pa.Table:
    told = [dict(row) for row in ROWS]
    for at, change in changes:
        told[at].update(change)
    return pa.Table.from_pylist(told, SCHEMA)


def found(ours: pa.Table, theirs: pa.Table) -> list[str]:
    return [str(one) for one in compare_results(OF, ours, theirs)]


def test_the_last_digits_of_a_sum_and_nulls_and_nan_are_no_difference() -> None:
    assert found(rows(), rows((0, {"mean": 0.3}))) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((0, {"mean": 0.3001}), f"device a, {AT}: mean is 0.3001; recomputed, it is"),
        ((1, {"mean": 0.0}), f"device None, {AT}: mean is 0.0; recomputed, it is None"),
        ((2, {"mean": 1.0}), f"device b, {AT}: mean is 1.0; recomputed, it is nan"),
        ((3, {"mean": 1.0}), f"device c, {AT}: mean is 1.0; recomputed, it is inf"),
        ((0, {"n": 4}), f"device a, {AT}: n is 4; recomputed, it is 3"),
    ],
)  # fmt: skip
def test_an_edited_value_is_found_with_its_row(change: tuple[int, dict[str, object]], said: str) -> None:
    (one,) = found(rows(change), rows())
    assert one.startswith(f"latest/minutes, {said}")


def test_a_row_that_is_missing_strange_or_doubled_is_found() -> None:
    table = rows()
    (gone,) = found(table.slice(1), table)
    (strange,) = found(table, table.slice(1))
    assert gone.endswith("missing from the table")
    assert strange.endswith("in the table, but not in the recomputed results")
    assert "device b" in found(pa.concat_tables([table, table.slice(2, 1)]), table)[0]
    assert "2 times" in found(pa.concat_tables([table, table.slice(2, 1)]), table)[0]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["insert", "retract"]), st.integers(0, 9)), max_size=30
    )
)
def test_what_stands_of_a_log_is_what_came_last_and_was_not_taken_back(
    log: list[tuple[int, str, int]],
) -> None:
    standing: dict[int, int] = {}
    written = []
    for batch, (window, kind, value) in enumerate(log):
        if kind == "retract" and window not in standing:
            continue
        value = standing.pop(window) if kind == "retract" else value
        written.append({"w": window, "kind": kind, "v": value, "batch_id": batch})
        if kind == "insert":
            standing[window] = value
    schema = pa.schema(
        [("w", pa.int64()), ("kind", pa.string()), ("v", pa.int64()), ("batch_id", pa.int64())]
    )
    left = latest_panes(pa.Table.from_pylist(written, schema), ["w"]).to_pylist()
    assert {row["w"]: row["v"] for row in left} == standing


PLAN = PLANS["fixed"]


def changed(**changes: object) -> Plan:
    return replace(PLAN, stages=(replace(PLAN.only_stage, **changes),))


def joined() -> Plan:
    left, right = PLAN.sources[0], replace(PLAN.sources[0], name="other")
    join = Join("inner", left.name, right.name, (JoinColumn("one", left.name, "value"),))
    stage = replace(
        PLAN.only_stage, inputs=(left.name, right.name), join=join, aggregates=join_member_outputs(join)
    )
    return replace(PLAN, sources=(left, right), stages=(stage,))


BY_BATCH = [
    (changed(window=Fixed(10, time="processing")), "depend on processing time"),
    (changed(window=Tumbling(TimePolicy(10))), "depend on processing time"),
    (changed(window=Global()), "never ends"),
    (PLANS["remembering"], "runs once per batch"),
    (changed(accumulation="discarding"), "partial results"),
    (changed(trigger=repeatedly(after_count(3))), "may omit elements"),
    (changed(trigger=after_watermark(late=every(5))), "may omit elements"),
    (PLANS["two stages"], "several stages"),
    (joined(), "any number of rows"),
]


@pytest.mark.parametrize(("plan", "why"), BY_BATCH, ids=[why for _, why in BY_BATCH])
def test_what_depends_on_how_records_were_cut_is_run_again_batch_by_batch(plan: Plan, why: str) -> None:
    assert why in (explain_batch_dependence(plan) or "")


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        changed(window=Sessions(5)),
        changed(window=Sliding(10, 5)),
        changed(window=Calendar("day")),
        changed(trigger=repeatedly(after_count(3)), final_pane="when_changed"),
        changed(trigger=after_watermark(late=every(5)), lateness=0),
        PLANS["by count"],
    ],
)
def test_what_records_alone_decide_is_computed_from_them(plan: Plan) -> None:
    assert explain_batch_dependence(plan) is None


@pytest.mark.parametrize(
    ("step", "may"),
    [
        (SqlStep("SELECT *, Explode(tags) AS tag FROM input"), True),
        (SqlStep("SELECT *, upper(word) AS word FROM input WHERE value > 1"), False),
        (RowFunctionStep(function_ref(dict), (Column("word", "STRING"),), many=True), True),
        (RowFunctionStep(function_ref(dict), (Column("word", "STRING"),)), False),
        (FilterStep(Comparison("value", ">", 1)), False),
    ],
)
def test_only_steps_that_may_give_several_rows_of_a_record_are_taken_for_such(step: Step, may: bool) -> None:
    assert can_multiply_records(replace(PLAN.only_stage, steps=(step,))) is may


def test_repeats_must_be_remembered_until_their_windows_are_over() -> None:
    for horizon, why in ((29, "expire before their windows close"), (30, None)):
        source = replace(PLAN.sources[0], deduplication=Deduplication(("key",), horizon))
        said = explain_batch_dependence(replace(PLAN, sources=(source,)))
        assert said == why if why is None else why in (said or "")


def test_a_sample_needs_keys_to_share_and_windows_of_time() -> None:
    assert "no key" in (explain_unsampleable(changed(key=()), Sample(key_share=0.1)) or "")
    assert "order of records" in (explain_unsampleable(PLANS["by count"], Sample(start=5)) or "")


def windows(*bounds: tuple[int, int]) -> pa.Table:
    kind = pa.timestamp("ms", tz="UTC")
    columns = [pa.array([pair[at] for pair in bounds], pa.int64()).cast(kind) for at in (0, 1)]
    return pa.table(columns, names=["window_start", "window_end"])


def starts(plan: Plan, table: pa.Table, watermark: int | None, sample: Sample) -> list[int]:
    left = filter_final_windows(table, plan.only_stage, watermark, sample)
    return pa.compute.cast(left.column("window_start"), pa.int64()).to_pylist()


def test_only_windows_that_cannot_change_any_more_are_compared() -> None:
    table = windows((0, 10), (10, 20), (20, 30), (30, 40))
    assert starts(PLAN, table, None, WHOLE) == []
    assert starts(PLAN, table, 49, WHOLE) == [0, 10]
    assert starts(PLAN, table, 50, WHOLE) == [0, 10, 20]
    assert starts(PLAN, table, 1_000, Sample(start=10, end=35)) == [10, 20]


def test_a_session_that_may_have_begun_before_the_sample_is_left_out() -> None:
    table = windows((12, 20), (15, 25), (16, 30))
    assert starts(changed(window=Sessions(5)), table, 1_000, Sample(start=10)) == [16]


def test_sketches_that_toss_coins_are_not_compared() -> None:
    outputs = (*PLAN.only_stage.aggregates, AggregateOutput("middle", quantiles("value", 0.5)))
    assert "middle" not in comparison_for(replace(PLAN.only_stage, aggregates=outputs), "t").values
    assert fixed(10) == PLAN.only_stage.window


def sessions(*rows: tuple[str | None, int, int]) -> pa.Table:
    table = windows(*((start, end) for _, start, end in rows))
    return table.append_column("device", pa.array([device for device, *_ in rows], pa.string()))


def test_sessions_that_were_cut_in_two_live_are_set_apart_on_both_sides() -> None:
    live = sessions(
        ("a", 0, 10), ("a", 5, 15), ("a", 30, 40), ("b", 0, 10), ("b", 11, 20), (None, 0, 5), (None, 5, 9)
    )
    cut = find_split_sessions(live, ["device"])
    assert sorted(cut, key=repr) == [(("a",), 0, 15), ((None,), 0, 9)]
    left = exclude_split_sessions(live, ["device"], cut).select(["device"]).to_pylist()
    assert [row["device"] for row in left] == ["a", "b", "b"]
    again = sessions(("a", 0, 15), ("a", 30, 40), ("b", 0, 10), ("b", 11, 20), (None, 0, 9))
    assert [row["device"] for row in exclude_split_sessions(again, ["device"], cut).to_pylist()] == [
        "a",
        "b",
        "b",
    ]
    assert find_split_sessions(sessions(("a", 0, 10), ("a", 11, 20)), ["device"]) == []
