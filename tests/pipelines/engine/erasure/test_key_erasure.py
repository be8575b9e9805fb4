"""Erasure removes a key from every file, keeps other keys unchanged, and leaves an account."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, KillSchedule, SimulatedKill

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.batch.erasure_account import digest_key
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.state_inspection import read_state_at
from penstock.engine.erasure import key_erasure
from penstock.engine.erasure.key_erasure import ErasureRequest, ErasureTarget, erase_key_state
from penstock.engine.errors import ErasureError
from penstock.engine.tables.table_paths import list_result_paths

ERASED_KEY = "somebody-in-particular"
REQUEST = ErasureRequest({"key": ERASED_KEY}, "the officer", 1_000)


def make_batches() -> list[InputBatch]:
    """Return batches of two keys with open windows. Tests erase one key after the third batch."""

    def record(offset: int, key: str, at: int) -> InputRecord:
        return InputRecord("records", 0, offset, {"key": key, "at": at, "value": offset, "word": None})

    return [
        InputBatch(
            number,
            100 + number,
            (record(2 * number, ERASED_KEY, 3 + number), record(2 * number + 1, "b", 4 + number)),
        )
        for number in range(6)
    ]


def erasure_target(bench: Bench) -> ErasureTarget:
    return ErasureTarget(bench.plan.name, bench.folder / "stream", bench.folder / "warehouse")


def feed_batches(bench: Bench, batches: list[InputBatch], epoch: int) -> None:
    engine = bench.open(epoch)
    for batch in batches:
        bench.feed(engine, batch)


def find_files_with_text(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def list_state_keys(bench: Bench) -> dict[str, list[Any]]:
    """List the keys in the state of each keyed stage."""
    states = read_state_at(bench.folder / "stream")
    tables = {name: state.read_table() for name, state in states.items()}
    return {
        name: sorted(set(t.column("key").to_pylist()))
        for name, t in tables.items()
        if "key" in t.column_names
    }


def rows_of_other_keys(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of other keys without batch ids, because an erasure is a batch too."""
    return [{n: v for n, v in row.items() if n != "batch_id"} for row in rows if row["key"] != ERASED_KEY]


@pytest.mark.parametrize("name", sorted(PLANS))
def test_an_erased_key_is_in_no_file_and_other_keys_continue(tmp_path: Path, name: str) -> None:
    batches = make_batches()
    undisturbed, bench = (Bench(PLANS[name], tmp_path / folder) for folder in ("undisturbed", "erased"))
    feed_batches(undisturbed, batches, 1)
    feed_batches(bench, batches[:3], 1)
    assert find_files_with_text(bench.folder / "stream", ERASED_KEY)
    outcome, erased = erase_key_state(
        erasure_target(bench), bench.plan, replace(REQUEST, requested_at_ms=90), 2
    )
    assert (outcome.batch_id, outcome.kind, outcome.clock) == (3, "erase", 102), (
        "the batch time never goes back"
    )
    assert find_files_with_text(bench.folder / "stream", ERASED_KEY) == []
    assert list_state_keys(bench)["stream"] == ["b"]
    assert erased.total_windows > 0
    feed_batches(bench, batches[3:], 3)
    table = "latest/stream" if "latest/stream" in list_result_paths(bench.plan) else "panes/stream"
    assert rows_of_other_keys(bench.rows(table)) == rows_of_other_keys(undisturbed.rows(table))


def test_the_account_names_the_requester_and_counts_but_not_the_key(tmp_path: Path) -> None:
    bench = Bench(PLANS["two stages"], tmp_path)
    feed_batches(bench, make_batches()[:3], 1)
    erase_key_state(erasure_target(bench), bench.plan, REQUEST, 2)
    rows, key_digest = bench.rows("erasures/stream"), digest_key("stream", {"key": ERASED_KEY})
    assert [{n: v for n, v in row.items() if n != "batch_clock"} for row in rows] == [
        {"stage": "stream", "fields": "key", "key_digest": key_digest, "asked_by": "the officer",
         "windows": 1, "rewritten": True, "batch_id": 3},
        {"stage": "whole", "fields": "key", "key_digest": key_digest, "asked_by": "the officer",
         "windows": 0, "rewritten": False, "batch_id": 3},
    ]  # fmt: skip
    assert find_files_with_text(tmp_path / "warehouse" / "erasures", ERASED_KEY) == []


def fail_at_step(monkeypatch: pytest.MonkeyPatch, kills: KillSchedule) -> None:
    """Count a step before and after each step of an erasure."""

    def count_steps(step: Any) -> Any:
        def run_step(*args: Any, **options: Any) -> Any:
            kills.count_step()
            result = step(*args, **options)
            kills.count_step()
            return result

        return run_step

    monkeypatch.setattr(key_erasure, "finish_commits", count_steps(key_erasure.finish_commits))
    monkeypatch.setattr(key_erasure, "_forget_history", count_steps(key_erasure._forget_history))
    for method in ("commit_outcome", "forget_before"):
        monkeypatch.setattr(BatchJournal, method, count_steps(getattr(BatchJournal, method)))
    monkeypatch.setattr(key_erasure, "_rewrite_state", count_steps(key_erasure._rewrite_state))


@pytest.mark.parametrize("host_first", [False, True])
@pytest.mark.parametrize("step", range(1, 13))
def test_a_killed_erasure_is_repeated_and_counted_once(tmp_path: Path, step: int, host_first: bool) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    feed_batches(bench, make_batches()[:3], 1)
    with pytest.MonkeyPatch.context() as patch:
        fail_at_step(patch, KillSchedule(step))
        with pytest.raises(SimulatedKill):
            erase_key_state(erasure_target(bench), bench.plan, REQUEST, 2)
    if host_first:
        bench.open(3)
    _, erased = erase_key_state(erasure_target(bench), bench.plan, replace(REQUEST, requested_at_ms=2_000), 4)
    repeated = erase_key_state(erasure_target(bench), bench.plan, replace(REQUEST, requested_at_ms=3_000), 5)
    assert repeated[1] == erased
    assert erased.windows == {"stream": 1}
    assert find_files_with_text(tmp_path / "stream", ERASED_KEY) == []
    assert [row["windows"] for row in bench.rows("erasures/stream")] == [1]
    feed_batches(bench, make_batches()[3:], 6)
    assert max(row["end"] for row in bench.rows("ledger/stream")) == 12


def test_an_erasure_first_finishes_the_commits_of_a_killed_host(tmp_path: Path) -> None:
    undisturbed, bench = (
        Bench(PLANS["fixed"], tmp_path / "undisturbed"),
        Bench(PLANS["fixed"], tmp_path / "killed"),
    )
    feed_batches(undisturbed, make_batches()[:3], 1)
    feed_batches(bench, make_batches()[:2], 1)
    engine = bench.open(2, report_outcome=lambda _: None)

    def killed(*_: Any) -> None:
        raise SimulatedKill

    engine._runner._tables.commit = killed  # type: ignore[method-assign]
    with pytest.raises(SimulatedKill):
        bench.feed(engine, make_batches()[2])
    erase_key_state(erasure_target(bench), bench.plan, REQUEST, 3)
    assert bench.rows("ledger/stream") == undisturbed.rows("ledger/stream")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"colour": "red"}, r"stream stream: no stage has colour in its key\. Name one or more of: key\."),
        ({}, "no stage has nothing in its key"),
    ],
)
def test_an_unknown_key_field_is_refused(tmp_path: Path, key: dict[str, str], message: str) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    feed_batches(bench, make_batches()[:1], 1)
    with pytest.raises(ErasureError, match=message):
        erase_key_state(erasure_target(bench), bench.plan, replace(REQUEST, key=key), 2)


def test_a_stream_without_state_is_refused(tmp_path: Path) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    bench.open()
    with pytest.raises(ErasureError, match="it has no state yet"):
        erase_key_state(erasure_target(bench), bench.plan, REQUEST, 2)
