"""One flipped bit in a file: a start or a read finds it, or the rows are right. Never a wrong row in silence.

Delta does not verify the checksums of pages and of log entries, and Parquet has none for footers; Penstock verifies
all of them where it reads a table. The entry that creates a table has none: its schema is compared with the files.
"""

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import DeltaError
from tests.examples import scale_examples
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, make_batches, run_batches
from tests.pipelines.engine.power.power_cuts import TableRows, read_rows, scratch_folder

from penstock.core.errors import PenstockError
from penstock.engine.storage.file_access import read_parquet, write_parquet
from penstock.engine.storage.log_checksums import find_entry_damage

PLAN = PLANS["fixed"]
SEED = 5
FLIPS_PER_FILE_KIND = 12
FILE_KINDS = {
    "intent": "stream/journal/*.intent.json",
    "outcome": "stream/journal/*.outcome.json",
    "state run": "stream/state/*/*.arrow",
    "data file": "warehouse/*/*/*.parquet",
    "footer": "warehouse/*/*/*.parquet",
    "log entry": "warehouse/*/*/_delta_log/*[1-9].json",
    "entry that creates a table": "warehouse/*/*/_delta_log/*0.json",
}


@pytest.fixture(scope="module")
def finished_run() -> Iterator[tuple[Path, TableRows, TableRows]]:
    """A run of four batches, its rows, and the rows after all six."""
    with scratch_folder() as folder:
        bench = Bench(PLAN, folder / "run")
        run_batches(bench, batches=make_batches()[:4])
        after_four = read_rows(bench)
        shutil.copytree(folder / "run", folder / "whole")
        whole = replace(bench, folder=folder / "whole")
        run_batches(whole, batches=make_batches())
        yield folder / "run", after_four, read_rows(whole)


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_a_flipped_bit_shows_no_wrong_row(finished_run: tuple[Path, TableRows, TableRows], kind: str) -> None:
    folder, rows_before, rows_after = finished_run
    random_source = random.Random(f"{SEED} {kind}")
    found = 0
    for _ in range(scale_examples(FLIPS_PER_FILE_KIND)):
        with scratch_folder() as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            file = random_source.choice(sorted(copy.glob(FILE_KINDS[kind])))
            flip = flip_random_bit(file, random_source, find_footer(file) if kind == "footer" else 0)
            bench = Bench(PLAN, copy)
            try:
                assert read_rows(bench) == rows_before, flip
                run_batches(bench, batches=make_batches())
                assert read_rows(bench) == rows_after, flip
            except (PenstockError, OSError, DeltaError, pa.ArrowException):
                found += 1
    assert found or kind == "intent"  # an intent with an outcome is not read any more


@pytest.mark.parametrize("bit", range(64))
def test_a_flipped_bit_in_the_length_of_a_footer_shows_no_wrong_row(tmp_path: Path, bit: int) -> None:
    rows = pa.table({"key": ["a", "b"], "n": [1, 2]})
    file = tmp_path / "rows.parquet"
    write_parquet(rows, file)
    content = bytearray(file.read_bytes())
    content[bit // 8 - 8] ^= 1 << bit % 8
    file.write_bytes(content)
    with pytest.raises((OSError, pa.ArrowException)):
        read_parquet(file)


def test_files_without_a_checksum_of_the_footer_are_read(tmp_path: Path) -> None:
    """Release 0.1.0 and other programs write none."""
    rows = pa.table({"key": ["a", "b"], "n": [1, 2]})
    pq.write_table(rows, tmp_path / "old.parquet")
    assert read_parquet(tmp_path / "old.parquet") == rows
    write_parquet(rows, tmp_path / "new.parquet")
    assert pq.read_table(tmp_path / "new.parquet") == rows
    assert duckdb.sql(f"SELECT * FROM '{tmp_path}/new.parquet'").to_arrow_table() == rows


def find_footer(file: Path) -> int:
    """Return where the footer of a data file starts."""
    content = file.read_bytes()
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def flip_random_bit(file: Path, random_source: random.Random, first: int = 0) -> str:
    content = bytearray(file.read_bytes())
    position, bit = random_source.randrange(first, len(content)), random_source.randrange(8)
    content[position] ^= 1 << bit
    file.write_bytes(content)
    return f"{file.name}, byte {position}, bit {bit}"


@pytest.mark.parametrize("content", [b'{"a\xec":1}', b'{"a":"\xec"}', b"\xff", b"", b'{"a":1}\n{"b'])
def test_bytes_that_are_no_text_are_damage(content: bytes) -> None:
    assert find_entry_damage(content, is_first=False)
