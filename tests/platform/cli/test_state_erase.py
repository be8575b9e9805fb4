"""`penstock state erase` of a stopped stream."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS
from tests.pipelines.engine.erasure.test_key_erasure import (
    ERASED_KEY,
    feed_batches,
    find_files_with_text,
    make_batches,
)

from penstock.engine.upgrade.stored_plan import store_plan
from penstock.platform.control import open_control_store

STREAM = "sensor_minute"


@pytest.fixture
def stopped_stream(home: Path, tmp_path: Path) -> Path:
    """A stopped stream with state, under a name of the catalog."""
    bench = Bench(replace(PLANS["two stages"], name=STREAM), tmp_path / "made")
    feed_batches(bench, make_batches()[:3], 1)
    folder = home / "streams" / STREAM
    folder.parent.mkdir(parents=True)
    shutil.move(bench.folder / "stream", folder)
    shutil.move(bench.folder / "warehouse", home / "warehouse")
    store_plan(folder, bench.plan)
    return folder


def test_a_key_is_erased_and_recorded(run, home: Path, stopped_stream: Path) -> None:
    result = run("state", "erase", STREAM, "--key", f"key={ERASED_KEY}", "--by", "the officer", "--yes")
    assert result.code == 0, result.out
    assert "stream  1" in result.out
    assert "whole   not keyed by these fields" in result.out
    assert f"batch 3 erased 1 windows; `penstock table show {STREAM} --kind erasures`" in result.out
    assert find_files_with_text(stopped_stream, ERASED_KEY) == []
    rows = json.loads(run("table", "show", STREAM, "--kind", "erasures", "--json").out)
    assert sorted((row["stage"], row["asked_by"], row["windows"]) for row in rows) == [
        ("stream", "the officer", 1), ("whole", "the officer", 0)
    ]  # fmt: skip
    store = open_control_store(f"sqlite:///{home}/control.db")
    last, lease = store.read_last_batch(STREAM), store.read_lease(STREAM)
    store.close()
    assert last is not None
    assert lease is not None
    assert (last.batch_id, last.kind, last.epoch, lease.expires_at_ms) == (3, "erase", lease.epoch, 0)


def test_the_state_size_of_each_stage_is_explained(run, stopped_stream: Path) -> None:
    sizes = json.loads(run("explain", STREAM, "--json").out)["sizes"]
    files = {folder.name: 0 for folder in stopped_stream.glob("state/*")}
    for path in stopped_stream.glob("state/*/run-*"):
        files[path.parent.name] += path.stat().st_size
    assert {size["stage"]: size["bytes"] for size in sizes} == files
    assert "  stream after batch 2: 6 rows, 0.0 MB\n" in run("explain", STREAM).out


def test_an_erasure_needs_confirmation(run, stopped_stream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    result = run("state", "erase", STREAM, "--key", f"key={ERASED_KEY}")
    assert result.code != 0
    assert find_files_with_text(stopped_stream, ERASED_KEY)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((STREAM, "--key", "colour=red"), "no stage has colour in its key. Name one or more of: key"),
        ((STREAM, "--key", "red"), "--key 'red' is not of the form FIELD=VALUE"),
        (("nobody", "--key", "key=a"), "nobody"),
    ],
)
def test_an_invalid_key_is_refused(run, stopped_stream: Path, args: tuple[str, ...], message: str) -> None:
    result = run("state", "erase", *args, "--yes")
    assert result.code != 0
    assert message in result.out + result.err
    assert find_files_with_text(stopped_stream, ERASED_KEY)
