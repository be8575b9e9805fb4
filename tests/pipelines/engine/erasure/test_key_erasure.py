"""A key that is erased is in no file any more; others go on as if nothing had been; an account stays."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, Fuse, Killed

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.batch.erasure_account import digest_key
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.state_inspection import read_state_at
from penstock.engine.erasure import key_erasure as erasing
from penstock.engine.erasure.key_erasure import ErasureRequest, ErasureTarget, erase_key_state
from penstock.engine.errors import ErasureError
from penstock.engine.tables.table_paths import list_result_paths

GONE = "somebody-in-particular"
REQUEST = ErasureRequest({"key": GONE}, "the officer", 1_000)


def history() -> list[InputBatch]:
    """Two keys, whose windows stay open: one of them is to be erased after the third batch."""

    def record(offset: int, key: str, at: int) -> InputRecord:
        return InputRecord("records", 0, offset, {"key": key, "at": at, "value": offset, "word": None})

    return [
        InputBatch(
            number,
            100 + number,
            (record(2 * number, GONE, 3 + number), record(2 * number + 1, "b", 4 + number)),
        )
        for number in range(6)
    ]


def place(bench: Bench) -> ErasureTarget:
    return ErasureTarget(bench.plan.name, bench.folder / "stream", bench.folder / "warehouse")


def fed(bench: Bench, batches: list[InputBatch], epoch: int) -> None:
    engine = bench.open(epoch)
    for batch in batches:
        bench.feed(engine, batch)


def files_with(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def kept(bench: Bench) -> dict[str, list[Any]]:
    """The keys of each stage that goes by keys."""
    states = read_state_at(bench.folder / "stream")
    tables = {name: state.read_table() for name, state in states.items()}
    return {
        name: sorted(set(t.column("key").to_pylist()))
        for name, t in tables.items()
        if "key" in t.column_names
    }


def others(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of other keys, without what counts batches: an erasure is one of its own."""
    return [{n: v for n, v in row.items() if n != "batch_id"} for row in rows if row["key"] != GONE]


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_key_is_gone_from_every_file_and_the_others_continue(tmp_path: Path, name: str) -> None:
    batches = history()
    calm, bench = (Bench(PLANS[name], tmp_path / folder) for folder in ("calm", "erased"))
    fed(calm, batches, 1)
    fed(bench, batches[:3], 1)
    assert files_with(bench.folder / "stream", GONE)
    outcome, erased = erase_key_state(place(bench), bench.plan, replace(REQUEST, requested_at_ms=90), 2)
    assert (outcome.batch_id, outcome.kind, outcome.clock) == (3, "erase", 102), "the clock never goes back"
    assert files_with(bench.folder / "stream", GONE) == []
    assert kept(bench)["stream"] == ["b"]
    assert erased.total_windows > 0
    fed(bench, batches[3:], 3)
    table = "latest/stream" if "latest/stream" in list_result_paths(bench.plan) else "panes/stream"
    assert others(bench.rows(table)) == others(calm.rows(table))


def test_the_account_has_the_requester_and_the_counts_but_not_the_key(tmp_path: Path) -> None:
    bench = Bench(PLANS["two stages"], tmp_path)
    fed(bench, history()[:3], 1)
    erase_key_state(place(bench), bench.plan, REQUEST, 2)
    rows, known = bench.rows("erasures/stream"), digest_key("stream", {"key": GONE})
    assert [{n: v for n, v in row.items() if n != "batch_clock"} for row in rows] == [
        {"stage": "stream", "fields": "key", "key_digest": known, "asked_by": "the officer",
         "windows": 1, "rewritten": True, "batch_id": 3},
        {"stage": "whole", "fields": "key", "key_digest": known, "asked_by": "the officer",
         "windows": 0, "rewritten": False, "batch_id": 3},
    ]  # fmt: skip
    assert files_with(tmp_path / "warehouse" / "erasures", GONE) == []


def steps(monkeypatch: pytest.MonkeyPatch, fuse: Fuse) -> None:
    """Let the process end before or after whatever an erasure does."""

    def burning(does: Any) -> Any:
        def done(*args: Any, **named: Any) -> Any:
            fuse.burn()
            made = does(*args, **named)
            fuse.burn()
            return made

        return done

    monkeypatch.setattr(erasing, "finish_commits", burning(erasing.finish_commits))
    monkeypatch.setattr(erasing, "_forget_history", burning(erasing._forget_history))
    for method in ("commit_outcome", "forget_before"):
        monkeypatch.setattr(BatchJournal, method, burning(getattr(BatchJournal, method)))
    monkeypatch.setattr(erasing, "_rewrite_state", burning(erasing._rewrite_state))


@pytest.mark.parametrize("host_first", [False, True])
@pytest.mark.parametrize("step", range(1, 13))
def test_an_erasure_that_was_killed_is_repeated_and_counts_once(
    tmp_path: Path, step: int, host_first: bool
) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    fed(bench, history()[:3], 1)
    with pytest.MonkeyPatch.context() as patch:
        steps(patch, Fuse(step))
        with pytest.raises(Killed):
            erase_key_state(place(bench), bench.plan, REQUEST, 2)
    if host_first:
        bench.open(3)
    _, erased = erase_key_state(place(bench), bench.plan, replace(REQUEST, requested_at_ms=2_000), 4)
    again = erase_key_state(place(bench), bench.plan, replace(REQUEST, requested_at_ms=3_000), 5)
    assert again[1] == erased
    assert erased.windows == {"stream": 1}
    assert files_with(tmp_path / "stream", GONE) == []
    assert [row["windows"] for row in bench.rows("erasures/stream")] == [1]
    fed(bench, history()[3:], 6)
    assert max(row["end"] for row in bench.rows("ledger/stream")) == 12


def test_commits_of_a_killed_host_are_finished_before_a_key_is_erased(tmp_path: Path) -> None:
    calm, bench = Bench(PLANS["fixed"], tmp_path / "calm"), Bench(PLANS["fixed"], tmp_path / "killed")
    fed(calm, history()[:3], 1)
    fed(bench, history()[:2], 1)
    engine = bench.open(2, told=lambda _: None)

    def killed(*_: Any) -> None:
        raise Killed

    engine._runner._tables.commit = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        bench.feed(engine, history()[2])
    erase_key_state(place(bench), bench.plan, REQUEST, 3)
    assert bench.rows("ledger/stream") == calm.rows("ledger/stream")


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ({"colour": "red"}, r"stream stream: no stage has colour in its key\. Name one or more of: key\."),
        ({}, "no stage has nothing in its key"),
    ],
)
def test_a_key_that_no_stage_has_is_refused(tmp_path: Path, key: dict[str, str], says: str) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    fed(bench, history()[:1], 1)
    with pytest.raises(ErasureError, match=says):
        erase_key_state(place(bench), bench.plan, replace(REQUEST, key=key), 2)


def test_a_stream_without_a_state_has_nothing_to_erase(tmp_path: Path) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    bench.open()
    with pytest.raises(ErasureError, match="it has no state yet"):
        erase_key_state(place(bench), bench.plan, REQUEST, 2)
