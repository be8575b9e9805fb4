"""Logs that are rotated, copied or truncated while a source reads them or is stopped."""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingestion.source_files import open_test_source, parse_records, read_until_empty

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources.line_batches import make_json_batch
from penstock.ingestion.sources.log_tail import LogTailSource
from penstock.ingestion.sources.source import read_rest


class RotatingLog:
    """A log of numbered lines, rotated like logrotate does, with a number or a date in the name."""

    def __init__(self, path: Path, dated: bool = False) -> None:
        self.path = path
        self._dated = dated
        self._numbers = count()
        self._days = count(20_260_101)
        self._modification_times = count(1_700_000_000)
        path.touch()

    def write(self, number: int) -> None:
        with self.path.open("ab") as file:
            file.writelines(b'{"n":%d}\n' % next(self._numbers) for _ in range(number))
        self._advance_modification_time()

    def rotate(self) -> None:
        if self._dated:
            self.path.rename(f"{self.path}-{next(self._days)}")
        else:
            for number in range(len(list(self.path.parent.iterdir())) - 1, 0, -1):
                self.rotated_path(number).rename(self.rotated_path(number + 1))
            self.path.rename(self.rotated_path(1))
        self.path.touch()
        self._advance_modification_time()

    def rotated_path(self, number: int) -> Path:
        return Path(f"{self.path}.{number}")

    def _advance_modification_time(self) -> None:
        os.utime(self.path, (modified_at := next(self._modification_times), modified_at))


def parse_numbers(batches: list[SourceBatch]) -> list[int]:
    return [json.loads(value)["n"] for batch in batches for value in batch.values]


def read_until_quiet(stream: Iterator[SourceBatch]) -> list[SourceBatch]:
    """Read batches until five in a row are empty; between two files one may be empty."""
    batches, empty_count = [], 0
    while empty_count < 5:
        batch = next(stream)
        empty_count = 0 if len(batch) else empty_count + 1
        batches += [batch] if len(batch) else []
    return batches


@settings(deadline=None)
@given(
    st.booleans(),
    st.lists(st.sampled_from(["write", "rotate", "read", "restart"]), max_size=25),
)
def test_every_line_is_read_once_for_any_order_of_rotations(
    tmp_path_factory: pytest.TempPathFactory, dated: bool, steps: list[str]
):
    path = tmp_path_factory.mktemp("logs") / "app.log"
    log, source = RotatingLog(path, dated), LogTailSource(path, make_json_batch)
    stream, last, numbers = source.read(None), None, []
    log.write(1)
    for step in ["read", *steps, "restart"]:
        if step == "write":
            log.write(3)
        elif step == "rotate":
            log.rotate()
        elif step == "restart" and last is not None:
            stream = read_rest(source, last, 0)
        if step in ("read", "restart"):
            batches = read_until_quiet(stream)
            numbers += parse_numbers(batches)
            last = batches[-1].position_after if batches else last
    assert numbers == list(range(numbers[-1] + 1))
    assert numbers[-1] + 1 == 1 + 3 * steps.count("write")


def start_log(path: Path) -> tuple[RotatingLog, LogTailSource, Any]:
    log, source = RotatingLog(path), LogTailSource(path, make_json_batch)
    log.write(2)
    (batch,) = read_until_quiet(source.read(None))
    return log, source, batch.position_after


def test_a_missing_or_compressed_file_is_reported(tmp_path: Path):
    log, source, position = start_log(tmp_path / "app.log")
    for _ in range(3):
        log.rotate()
        log.write(1)
    log.rotated_path(2).rename(tmp_path / "app.log.2.gz")
    with pytest.raises(SourceError, match=r"app.log.2.gz is compressed.*Decompress it"):
        read_until_error(read_rest(source, position, 0))
    (tmp_path / "app.log.2.gz").unlink()
    with pytest.raises(SourceError, match=r"file number 2.* is missing"):
        read_until_error(read_rest(source, position, 0))


def read_until_error(stream: Iterator[SourceBatch]) -> None:
    for _ in range(1_000):
        next(stream)


def test_a_reused_inode_is_not_taken_for_the_same_file(tmp_path: Path):
    log, source, position = start_log(tmp_path / "app.log")
    content = b"".join(b'{"n":%d}\n' % number for number in range(100, 110))
    log.path.write_bytes(content)
    with pytest.raises(SourceError, match="no longer in"):
        next(read_rest(source, position, 0))


def test_a_log_copied_and_truncated_is_continued_in_the_copy(tmp_path: Path):
    log, source, position = start_log(tmp_path / "app.log")
    log.write(2)
    log.rotated_path(1).write_bytes(log.path.read_bytes())
    log.path.write_bytes(b"")
    log.write(3)
    assert parse_numbers(read_until_quiet(read_rest(source, position, 0))) == [2, 3, 4, 5, 6]


def test_a_log_truncated_while_stopped_is_read_from_its_start_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    log, source, position = start_log(tmp_path / "app.log")
    log.path.write_bytes(b"")
    log.write(1)
    assert parse_numbers(read_until_quiet(read_rest(source, position, 0))) == [2]
    assert "Log truncated while the source was stopped" in caplog.text


def test_a_log_truncated_and_grown_between_polls_is_read_from_its_start(tmp_path: Path):
    path = tmp_path / "app.log"
    log, source = RotatingLog(path), LogTailSource(path, make_json_batch)
    log.write(2)
    stream = source.read(None)
    assert parse_numbers(read_until_quiet(stream)) == [0, 1]
    path.write_bytes(b"")
    log.write(9)
    assert parse_numbers(read_until_quiet(stream)) == list(range(2, 11))


def test_a_log_is_followed_through_rotation_and_growth(tmp_path: Path):
    path = tmp_path / "app.log"
    path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":')
    source = open_test_source("log", path)
    stream = source.read(None)
    assert parse_records(read_until_empty(stream)) == [{"n": 1}, {"n": 2}]
    with path.open("ab") as file:
        file.write(b"3}\n")
    third = read_until_empty(stream)
    assert parse_records(third) == [{"n": 3}]
    path.rename(tmp_path / "app.log.1")
    with (tmp_path / "app.log.1").open("ab") as file:
        file.write(b'{"n":4}\n')
    path.write_bytes(b'{"n":5}\n')
    assert parse_records(read_until_empty(stream)) == [{"n": 4}, {"n": 5}]
    resumed = open_test_source("log", path)
    assert parse_records(read_until_empty(read_rest(resumed, third[0].position, 1))) == [{"n": 4}, {"n": 5}]
    (tmp_path / "app.log.1").unlink()
    with pytest.raises(SourceError, match="rotated"):
        next(resumed.read(third[0].position))


def test_a_truncated_log_is_read_from_its_start(tmp_path: Path):
    path = tmp_path / "app.log"
    path.write_bytes(b'{"n":1}\n{"n":2}\n')
    stream = open_test_source("log", path).read(None)
    read_until_empty(stream)
    path.write_bytes(b'{"n":3}\n')
    assert parse_records(read_until_empty(stream)) == [{"n": 3}]
