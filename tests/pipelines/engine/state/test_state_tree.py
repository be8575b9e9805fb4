"""A state tree behaves like a dictionary of groups through batches, merges and reopening."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples

from penstock.engine.state import sorted_run, state_tree
from penstock.engine.state.compaction import TreeCompactor
from penstock.engine.state.compaction_policy import plan_merge
from penstock.engine.state.header_columns import DUE_CLOCK, DUE_EVENT, MAX_TIMESTAMP_MS
from penstock.engine.state.sorted_run import GroupHashes

VALUES = pa.schema([pa.field("value", pa.int64())])

# Few groups, so that batches overlap. Some groups differ only in the lower half of their hash.
groups = st.tuples(st.integers(0, 5), st.integers(0, 2))
rows = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), max_size=3)
batches = st.lists(st.dictionaries(groups, rows, max_size=6), max_size=25)


def make_run(batch: dict[tuple[int, int], list[tuple[int, int]]], now: int) -> pa.Table:
    lines = [
        (hi, lo, now + due, MAX_TIMESTAMP_MS, False, value)
        for (hi, lo), content in batch.items()
        for value, due in content
    ] + [
        (hi, lo, MAX_TIMESTAMP_MS, MAX_TIMESTAMP_MS, True, None)
        for (hi, lo), content in batch.items()
        if not content
    ]
    columns = list(zip(*lines, strict=True)) if lines else [[]] * 6
    return pa.table(
        [pa.array(c) for c in columns], names=state_tree.create_empty_tree(VALUES).schema.names
    ).cast(state_tree.create_empty_tree(VALUES).schema)


def make_hashes(wanted: list[tuple[int, int]]) -> GroupHashes:
    pairs = sorted(wanted)
    return GroupHashes(np.array([p[0] for p in pairs], np.uint64), np.array([p[1] for p in pairs], np.uint64))


def look_up(tree: state_tree.StateTree, wanted: GroupHashes) -> dict[tuple[int, int], list[int]]:
    table, positions = tree.look_up_groups(wanted)
    result: dict[tuple[int, int], list[int]] = {}
    for value, position in zip(table["value"].to_pylist(), positions, strict=True):
        result.setdefault((int(wanted.hi[position]), int(wanted.lo[position])), []).append(value)
    return {group: sorted(values) for group, values in result.items()}


@settings(
    max_examples=scale_examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=batches, reopen=st.booleans())
def test_a_tree_holds_the_last_rows_of_each_group(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[dict[tuple[int, int], list[tuple[int, int]]]],
    reopen: bool,
) -> None:
    folder = tmp_path_factory.mktemp("state")
    tree = state_tree.create_empty_tree(VALUES)
    model: dict[tuple[int, int], list[tuple[int, int]]] = {}
    all_groups = make_hashes([(hi, lo) for hi in range(6) for lo in range(3)])
    for number, batch in enumerate(history):
        tree = tree.with_run(make_run(batch, now=number), folder / f"run-{number}.arrow").compact(folder)
        model.update({group: [(v, number + due) for v, due in content] for group, content in batch.items()})
        if reopen:
            tree = state_tree.open_tree(VALUES, folder, tree.list_file_names())
        expected = {group: sorted(v for v, _ in content) for group, content in model.items() if content}
        assert look_up(tree, all_groups) == expected


@settings(
    max_examples=scale_examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=batches, max_inline_rows=st.sampled_from([1, 10]), most_runs=st.sampled_from([2, 8]))
def test_background_merges_do_not_change_the_content(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[dict[tuple[int, int], list[tuple[int, int]]]],
    max_inline_rows: int,
    most_runs: int,
) -> None:
    plain, background = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("beside")
    compactor = TreeCompactor(background, max_inline_rows, most_runs)
    tree, compacted = state_tree.create_empty_tree(VALUES), state_tree.create_empty_tree(VALUES)
    all_groups = make_hashes([(hi, lo) for hi in range(6) for lo in range(3)])
    for number, batch in enumerate(history):
        rows = make_run(batch, now=number)
        tree = tree.with_run(rows, plain / f"run-{number:03d}.arrow")
        compacted = compactor.compact(compacted.with_run(rows, background / f"run-{number:03d}.arrow"))
        assert look_up(compacted, all_groups) == look_up(tree, all_groups)
        assert look_up(
            state_tree.open_tree(VALUES, background, compacted.list_file_names()), all_groups
        ) == look_up(tree, all_groups)


def test_a_failed_merge_raises_in_the_batch_that_adopts_it(tmp_path: Path) -> None:
    compactor = TreeCompactor(tmp_path / "missing", max_inline_rows=0, max_runs=6)
    tree = state_tree.create_empty_tree(VALUES)
    for number in range(6):
        tree = tree.with_run(make_run({(number, 0): [(1, 1)]}, now=0), tmp_path / f"run-{number}.arrow")
        assert compactor.compact(tree) == tree
    assert compactor.is_merging()
    tree = tree.with_run(make_run({(6, 0): [(1, 1)]}, now=0), tmp_path / "run-6.arrow")
    with pytest.raises(FileNotFoundError):
        compactor.compact(tree)
    assert not compactor.is_merging()


@settings(
    max_examples=scale_examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=batches, span=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_only_the_newest_rows_of_a_group_are_due(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[dict[tuple[int, int], list[tuple[int, int]]]],
    span: tuple[int, int],
) -> None:
    folder = tmp_path_factory.mktemp("state")
    tree = state_tree.create_empty_tree(VALUES)
    model: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, batch in enumerate(history):
        tree = tree.with_run(make_run(batch, now=number), folder / f"run-{number}.arrow").compact(folder)
        model.update({group: [(v, number + due) for v, due in content] for group, content in batch.items()})
    after, until = min(span), max(span)
    found = tree.find_due_groups(DUE_EVENT, after, until)
    expected = {g for g, content in model.items() if any(after < due <= until for _, due in content)}
    assert set(zip(found.hi.tolist(), found.lo.tolist(), strict=True)) == expected
    assert len(tree.find_due_groups(DUE_CLOCK, 0, MAX_TIMESTAMP_MS - 1)) == 0


def test_later_batches_do_not_change_an_older_tree(tmp_path: Path) -> None:
    first = state_tree.create_empty_tree(VALUES).with_run(
        make_run({(1, 1): [(7, 1)]}, now=0), tmp_path / "run-0.arrow"
    )
    first.with_run(make_run({(1, 1): [(8, 1)]}, now=1), tmp_path / "run-1.arrow").compact(tmp_path)
    assert look_up(first, make_hashes([(1, 1)])) == {(1, 1): [7]}


def test_the_number_of_runs_grows_logarithmically() -> None:
    sizes: list[int] = []
    rewritten = 0
    for _ in range(3000):
        sizes.append(10)
        while (span := plan_merge(sizes)) is not None:
            begin, end = span
            rewritten += sum(sizes[begin:end])
            sizes[begin:end] = [sum(sizes[begin:end])]
    assert len(sizes) <= 25
    assert rewritten <= 5 * 3000 * 10


def test_a_stored_number_is_read_as_a_list_if_the_schema_has_lists(tmp_path: Path) -> None:
    number_schema, list_schema = (
        pa.schema([pa.field("sum", kind)]) for kind in (pa.float64(), pa.list_(pa.float64()))
    )
    numbers, lists = state_tree.create_empty_tree(number_schema), state_tree.create_empty_tree(list_schema)

    def row(hi: int, expected: object, schema: pa.Schema) -> pa.Table:
        return pa.table([[hi], [0], [hi], [MAX_TIMESTAMP_MS], [False], [expected]], names=schema.names).cast(
            schema
        )

    for hi, expected in enumerate([1.5, float("inf")]):
        numbers = numbers.with_run(row(hi, expected, numbers.schema), tmp_path / f"run-{hi}.arrow")
    reopened = state_tree.open_tree(list_schema, tmp_path, numbers.list_file_names()).with_run(
        row(2, [2.5, 1e-20], lists.schema), tmp_path / "run-2.arrow"
    )
    wanted = make_hashes([(0, 0), (1, 0), (2, 0)])
    assert reopened.look_up_groups(wanted)[0]["sum"].to_pylist() == [[2.5, 1e-20], [0.0], [1.5]]
    for runs in (
        reopened.runs,
        [sorted_run.open_run(tmp_path / name) for name in reopened.list_file_names()],
    ):
        rows = sorted_run.SortedRun(sorted_run.merge_runs(runs, includes_oldest=True)).table
        assert rows["sum"].to_pylist() == [[1.5], [0.0], [2.5, 1e-20]]
