"""Sources of record files, read from the start and again from each position."""

from pathlib import Path
from typing import Any

import pytest
from tests.ingestion.source_files import (
    FILE_WRITERS,
    SENSOR_ROWS,
    check_positions,
    open_test_source,
    parse_rows,
    read_until_empty,
    write_json_lines,
)

from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.sources.paced_replay import ReplayPace
from penstock.ingestion.sources.source import read_rest
from penstock.ingestion.sources.source_discovery import list_source_kinds


@pytest.mark.parametrize("kind", FILE_WRITERS)
def test_a_file_is_read_again_from_any_position(kind: str, tmp_path: Path):
    source = open_test_source(kind, FILE_WRITERS[kind](tmp_path / "file", SENSOR_ROWS))
    batches = list(source.read(None))
    assert parse_rows(batches) == SENSOR_ROWS
    check_positions(source, batches)


@pytest.mark.parametrize("kind", FILE_WRITERS)
def test_new_files_of_a_folder_are_read_once_across_restarts(kind: str, tmp_path: Path):
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    FILE_WRITERS[kind](folder / "z", SENSOR_ROWS[:3_000])
    source = open_test_source(kind, folder, follow=True, index=index)
    stream = source.read(None)
    first = read_until_empty(stream)
    assert parse_rows(first) == SENSOR_ROWS[:3_000]
    FILE_WRITERS[kind](folder / "a", SENSOR_ROWS[3_000:4_000])
    (folder / ".hidden").write_text("no record")
    (folder / "b.tmp").write_text("no record")
    second = read_until_empty(stream)
    assert parse_rows(second) == SENSOR_ROWS[3_000:4_000]
    FILE_WRITERS[kind](folder / "0", SENSOR_ROWS[4_000:5_000])
    resumed = open_test_source(kind, folder, follow=True, index=index)
    rest = read_until_empty(read_rest(resumed, second[-1].position, len(second[-1])))
    assert parse_rows(rest) == SENSOR_ROWS[4_000:5_000]


@pytest.mark.parametrize("kind", FILE_WRITERS)
def test_a_batch_has_a_maximum_size(kind: str, tmp_path: Path):
    rows = [row | {"site": f"{n}" * 200_000} for n, row in enumerate(SENSOR_ROWS[:60])]
    source = open_test_source(kind, FILE_WRITERS[kind](tmp_path / "file", rows))
    batches = list(source.read(None))
    assert max(sum(map(len, batch.values)) for batch in batches) < 10_000_000
    assert parse_rows(batches) == rows
    check_positions(source, batches)


@pytest.mark.parametrize("kind", FILE_WRITERS)
def test_a_deleted_file_does_not_stop_the_batches_after_it(kind: str, tmp_path: Path):
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    FILE_WRITERS[kind](folder / "a", SENSOR_ROWS[:6_000])
    first, second = read_until_empty(open_test_source(kind, folder, follow=True, index=index).read(None))[-2:]
    resumed = open_test_source(kind, folder, follow=True, index=index)
    assert parse_rows(read_until_empty(read_rest(resumed, first.position_after, 0))) == parse_rows([second])
    (folder / "a").unlink()
    FILE_WRITERS[kind](folder / "b", SENSOR_ROWS[7_000:8_000])
    resumed = open_test_source(kind, folder, follow=True, index=index)
    assert (
        parse_rows(read_until_empty(read_rest(resumed, second.position_after, 0))) == SENSOR_ROWS[7_000:8_000]
    )
    with pytest.raises(SourceError, match="Restore it"):
        next(read_rest(resumed, first.position_after, 0))


@pytest.mark.parametrize("kind", FILE_WRITERS)
def test_a_replaced_file_is_refused(kind: str, tmp_path: Path):
    path = FILE_WRITERS[kind](tmp_path / "file", SENSOR_ROWS[:6_000])
    source = open_test_source(kind, path)
    batch = next(source.read(None))
    FILE_WRITERS[kind](path, SENSOR_ROWS[6_000:])
    for position in (batch.position, batch.position_after):
        with pytest.raises(SourceError, match="is not the file that was read"):
            next(read_rest(source, position, 0))


def test_appended_lines_are_read_next(tmp_path: Path):
    path = write_json_lines(tmp_path / "file", SENSOR_ROWS[:10])
    source = open_test_source("json-lines", path)
    (batch,) = source.read(None)
    write_json_lines(path, SENSOR_ROWS[:25])
    assert parse_rows(list(read_rest(source, batch.position_after, 0))) == SENSOR_ROWS[10:25]
    write_json_lines(path, SENSOR_ROWS[:5])
    with pytest.raises(SourceError, match=r"shorter than before|is not the file"):
        list(read_rest(source, batch.position_after, 0))


def test_relative_and_absolute_paths_have_the_same_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "in").mkdir()
    path = write_json_lines(tmp_path / "in" / "file", SENSOR_ROWS[:1])
    monkeypatch.chdir(tmp_path / "in")
    assert (
        open_test_source("json-lines", "file").description == open_test_source("json-lines", path).description
    )
    monkeypatch.chdir(tmp_path)
    assert (
        open_test_source("json-lines", "in/file").description
        == open_test_source("json-lines", path).description
    )


def test_missing_files_and_unknown_sources_are_reported(tmp_path: Path):
    with pytest.raises(SourceError, match="does not exist"):
        open_test_source("csv", tmp_path / "missing")
    with pytest.raises(SourceError, match="index"):
        open_test_source("csv", tmp_path)
    with pytest.raises(SourceError, match="Did you mean 'sensors'"):
        open_test_source("sensor", "")
    assert {"csv", "http", "nexmark-bids", "sse"} < set(list_source_kinds())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pace": ReplayPace(speed=2, rate=5)}, "exclude each other"),
        ({"pace": ReplayPace(disorder=0.5)}, "Add --max-delay"),
        ({"pace": ReplayPace(disorder_ms=50)}, "Add --disorder"),
        ({"replay_by": "at"}, "--replay-by needs --speed or --disorder"),
        ({"replay_by": "at", "pace": ReplayPace(rate=5)}, "--replay-by needs --speed or --disorder"),
        ({"follow": True}, "is a file; --follow needs a folder"),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], problem: str, tmp_path: Path):
    path = write_json_lines(tmp_path / "file", SENSOR_ROWS[:1])
    with pytest.raises(SourceOptionsError, match=problem):
        open_test_source("json-lines", path, **options)


def test_a_file_that_became_shorter_is_refused(tmp_path: Path):
    path = write_json_lines(tmp_path / "file", SENSOR_ROWS[:100])
    source = open_test_source("json-lines", path)
    (batch,) = source.read(None)
    write_json_lines(path, SENSOR_ROWS[:50])
    with pytest.raises(SourceError, match="shorter"):
        list(read_rest(source, batch.position, 100))
