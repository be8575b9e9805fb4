"""The tree behaves as a dictionary of groups, through any history of batches, merges and reopenings."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples

from penstock.engine.state import sorted_run as runs_of
from penstock.engine.state import state_tree as trees
from penstock.engine.state.compaction import TreeCompactor
from penstock.engine.state.compaction_policy import plan_merge
from penstock.engine.state.header_columns import DUE_CLOCK, DUE_EVENT, MAX_TIMESTAMP_MS
from penstock.engine.state.sorted_run import GroupHashes

VALUES = pa.schema([pa.field("value", pa.int64())])

# Few groups, so that batches overlap; equal upper halves, so that only the lower half differs.
groups = st.tuples(st.integers(0, 5), st.integers(0, 2))
rows = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), max_size=3)
batches = st.lists(st.dictionaries(groups, rows, max_size=6), max_size=25)


def changed(batch: dict[tuple[int, int], list[tuple[int, int]]], now: int) -> pa.Table:
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
    return pa.table([pa.array(c) for c in columns], names=trees.create_empty_tree(VALUES).schema.names).cast(
        trees.create_empty_tree(VALUES).schema
    )


def asked(wanted: list[tuple[int, int]]) -> GroupHashes:
    pairs = sorted(wanted)
    return GroupHashes(np.array([p[0] for p in pairs], np.uint64), np.array([p[1] for p in pairs], np.uint64))


def answer(tree: trees.StateTree, wanted: GroupHashes) -> dict[tuple[int, int], list[int]]:
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
    tree = trees.create_empty_tree(VALUES)
    model: dict[tuple[int, int], list[tuple[int, int]]] = {}
    everything = asked([(hi, lo) for hi in range(6) for lo in range(3)])
    for number, batch in enumerate(history):
        tree = tree.with_run(changed(batch, now=number), folder / f"run-{number}.arrow").compact(folder)
        model.update({group: [(v, number + due) for v, due in content] for group, content in batch.items()})
        if reopen:
            tree = trees.open_tree(VALUES, folder, tree.list_file_names())
        held = {group: sorted(v for v, _ in content) for group, content in model.items() if content}
        assert answer(tree, everything) == held


@settings(
    max_examples=scale_examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=batches, at_once=st.sampled_from([1, 10]), most_runs=st.sampled_from([2, 8]))
def test_background_merges_do_not_change_the_content(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[dict[tuple[int, int], list[tuple[int, int]]]],
    at_once: int,
    most_runs: int,
) -> None:
    plain, beside = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("beside")
    upkeep = TreeCompactor(beside, at_once, most_runs)
    tree, tended = trees.create_empty_tree(VALUES), trees.create_empty_tree(VALUES)
    everything = asked([(hi, lo) for hi in range(6) for lo in range(3)])
    for number, batch in enumerate(history):
        rows = changed(batch, now=number)
        tree = tree.with_run(rows, plain / f"run-{number:03d}.arrow")
        tended = upkeep.compact(tended.with_run(rows, beside / f"run-{number:03d}.arrow"))
        assert answer(tended, everything) == answer(tree, everything)
        assert answer(trees.open_tree(VALUES, beside, tended.list_file_names()), everything) == answer(
            tree, everything
        )


def test_a_failed_merge_raises_in_the_batch_that_adopts_it(tmp_path: Path) -> None:
    upkeep = TreeCompactor(tmp_path / "missing", max_inline_rows=0, max_runs=6)
    tree = trees.create_empty_tree(VALUES)
    for number in range(6):
        tree = tree.with_run(changed({(number, 0): [(1, 1)]}, now=0), tmp_path / f"run-{number}.arrow")
        assert upkeep.compact(tree) == tree
    assert upkeep.is_merging()
    tree = tree.with_run(changed({(6, 0): [(1, 1)]}, now=0), tmp_path / "run-6.arrow")
    with pytest.raises(FileNotFoundError):
        upkeep.compact(tree)
    assert not upkeep.is_merging()


@settings(
    max_examples=scale_examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=batches, span=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_only_the_youngest_rows_are_due(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[dict[tuple[int, int], list[tuple[int, int]]]],
    span: tuple[int, int],
) -> None:
    folder = tmp_path_factory.mktemp("state")
    tree = trees.create_empty_tree(VALUES)
    model: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, batch in enumerate(history):
        tree = tree.with_run(changed(batch, now=number), folder / f"run-{number}.arrow").compact(folder)
        model.update({group: [(v, number + due) for v, due in content] for group, content in batch.items()})
    after, until = min(span), max(span)
    found = tree.find_due_groups(DUE_EVENT, after, until)
    expected = {g for g, content in model.items() if any(after < due <= until for _, due in content)}
    assert set(zip(found.hi.tolist(), found.lo.tolist(), strict=True)) == expected
    assert len(tree.find_due_groups(DUE_CLOCK, 0, MAX_TIMESTAMP_MS - 1)) == 0


def test_a_tree_does_not_change_with_later_batches(tmp_path: Path) -> None:
    first = trees.create_empty_tree(VALUES).with_run(
        changed({(1, 1): [(7, 1)]}, now=0), tmp_path / "run-0.arrow"
    )
    first.with_run(changed({(1, 1): [(8, 1)]}, now=1), tmp_path / "run-1.arrow").compact(tmp_path)
    assert answer(first, asked([(1, 1)])) == {(1, 1): [7]}


def test_the_number_of_runs_grows_with_the_logarithm_of_the_batches() -> None:
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


def test_a_stored_number_becomes_a_list_of_one_if_the_schema_stores_lists(tmp_path: Path) -> None:
    alone, several = (pa.schema([pa.field("sum", kind)]) for kind in (pa.float64(), pa.list_(pa.float64())))
    was, now = trees.create_empty_tree(alone), trees.create_empty_tree(several)

    def row(hi: int, held: object, schema: pa.Schema) -> pa.Table:
        return pa.table([[hi], [0], [hi], [MAX_TIMESTAMP_MS], [False], [held]], names=schema.names).cast(
            schema
        )

    for hi, held in enumerate([1.5, float("inf")]):
        was = was.with_run(row(hi, held, was.schema), tmp_path / f"run-{hi}.arrow")
    again = trees.open_tree(several, tmp_path, was.list_file_names()).with_run(
        row(2, [2.5, 1e-20], now.schema), tmp_path / "run-2.arrow"
    )
    wanted = asked([(0, 0), (1, 0), (2, 0)])
    assert again.look_up_groups(wanted)[0]["sum"].to_pylist() == [[2.5, 1e-20], [0.0], [1.5]]
    for runs in (again.runs, [runs_of.open_run(tmp_path / name) for name in again.list_file_names()]):
        rows = runs_of.SortedRun(runs_of.merge_runs(runs, includes_oldest=True)).table
        assert rows["sum"].to_pylist() == [[1.5], [0.0], [2.5, 1e-20]]
