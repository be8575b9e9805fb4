"""Each source gives what is there, and from a position of its own the same again, byte for byte."""

from pathlib import Path
from typing import Any

import pytest
from tests.ingestion.source_files import (
    ROWS,
    WRITERS,
    as_rows,
    check_positions,
    opened,
    until_nothing,
    write_json_lines,
)

from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.sources.opening import source_kinds
from penstock.ingestion.sources.replay import Pace
from penstock.ingestion.sources.source import rest_of


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_gives_its_records_and_the_same_again_from_any_position(kind: str, tmp_path: Path):
    source = opened(kind, WRITERS[kind](tmp_path / "file", ROWS))
    batches = list(source.read(None))
    assert as_rows(batches) == ROWS
    check_positions(source, batches)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_folder_takes_up_new_files_once_each_and_survives_a_restart(kind: str, tmp_path: Path):
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    WRITERS[kind](folder / "z", ROWS[:3_000])
    source = opened(kind, folder, follow=True, index=index)
    stream = source.read(None)
    first = until_nothing(stream)
    assert as_rows(first) == ROWS[:3_000]
    WRITERS[kind](folder / "a", ROWS[3_000:4_000])
    (folder / ".hidden").write_text("no record")
    (folder / "b.tmp").write_text("no record")
    second = until_nothing(stream)
    assert as_rows(second) == ROWS[3_000:4_000]
    WRITERS[kind](folder / "0", ROWS[4_000:5_000])
    again = opened(kind, folder, follow=True, index=index)
    rest = until_nothing(rest_of(again, second[-1].position, len(second[-1])))
    assert as_rows(rest) == ROWS[4_000:5_000]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_batch_holds_no_more_than_some_megabytes(kind: str, tmp_path: Path):
    rows = [row | {"site": f"{n}" * 200_000} for n, row in enumerate(ROWS[:60])]
    source = opened(kind, WRITERS[kind](tmp_path / "file", rows))
    batches = list(source.read(None))
    assert max(sum(map(len, batch.values)) for batch in batches) < 10_000_000
    assert as_rows(batches) == rows
    check_positions(source, batches)


@pytest.mark.parametrize("kind", WRITERS)
def test_after_a_batch_comes_what_follows_it_also_when_its_file_is_gone(kind: str, tmp_path: Path):
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    WRITERS[kind](folder / "a", ROWS[:6_000])
    first, second = until_nothing(opened(kind, folder, follow=True, index=index).read(None))[-2:]
    again = opened(kind, folder, follow=True, index=index)
    assert as_rows(until_nothing(rest_of(again, first.after, 0))) == as_rows([second])
    (folder / "a").unlink()
    WRITERS[kind](folder / "b", ROWS[7_000:8_000])
    again = opened(kind, folder, follow=True, index=index)
    assert as_rows(until_nothing(rest_of(again, second.after, 0))) == ROWS[7_000:8_000]
    with pytest.raises(SourceError, match="bring it back"):
        next(rest_of(again, first.after, 0))


@pytest.mark.parametrize("kind", WRITERS)
def test_another_file_in_the_place_of_the_one_that_was_read_is_refused(kind: str, tmp_path: Path):
    path = WRITERS[kind](tmp_path / "file", ROWS[:6_000])
    source = opened(kind, path)
    batch = next(source.read(None))
    WRITERS[kind](path, ROWS[6_000:])
    for position in (batch.position, batch.after):
        with pytest.raises(SourceError, match="another file than the one that was read"):
            next(rest_of(source, position, 0))


def test_lines_that_were_added_to_a_file_are_what_follows(tmp_path: Path):
    path = write_json_lines(tmp_path / "file", ROWS[:10])
    source = opened("json-lines", path)
    (batch,) = source.read(None)
    write_json_lines(path, ROWS[:25])
    assert as_rows(list(rest_of(source, batch.after, 0))) == ROWS[10:25]
    write_json_lines(path, ROWS[:5])
    with pytest.raises(SourceError, match=r"shorter than it was|another file"):
        list(rest_of(source, batch.after, 0))


def test_a_place_is_the_same_however_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in").mkdir()
    path = write_json_lines(tmp_path / "in" / "file", ROWS[:1])
    monkeypatch.chdir(tmp_path / "in")
    assert opened("json-lines", "file").description == opened("json-lines", path).description
    monkeypatch.chdir(tmp_path)
    assert opened("json-lines", "in/file").description == opened("json-lines", path).description


def test_what_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(SourceError, match="there is no"):
        opened("csv", tmp_path / "missing")
    with pytest.raises(SourceError, match="index"):
        opened("csv", tmp_path)
    with pytest.raises(SourceError, match="sensors"):
        opened("sensor", "")
    assert {"csv", "http", "nexmark-bids", "sse"} < set(source_kinds())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pace": Pace(speed=2, rate=5)}, "a speed or at a rate"),
        ({"pace": Pace(disorder=0.5)}, "say also by how much"),
        ({"pace": Pace(disorder_ms=50)}, "say also which share"),
        ({"replay_by": "at"}, "without a speed or disorder"),
        ({"replay_by": "at", "pace": Pace(rate=5)}, "without a speed or disorder"),
        ({"follow": True}, "is a file, and a folder is what is followed"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options: dict[str, Any], said: str, tmp_path: Path):
    path = write_json_lines(tmp_path / "file", ROWS[:1])
    with pytest.raises(SourceOptionsError, match=said):
        opened("json-lines", path, **options)


def test_a_file_that_became_shorter_is_refused(tmp_path: Path):
    path = write_json_lines(tmp_path / "file", ROWS[:100])
    source = opened("json-lines", path)
    (batch,) = source.read(None)
    write_json_lines(path, ROWS[:50])
    with pytest.raises(SourceError, match="shorter"):
        list(rest_of(source, batch.position, 100))
