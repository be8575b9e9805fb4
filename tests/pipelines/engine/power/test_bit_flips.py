"""One flipped bit in a file: a start or a read finds it, or the rows are right. Never a wrong row in silence.

Delta does not verify the checksums of pages and of log entries; Penstock does, where it reads a table and where a
stream starts. The footer of a data file and the entry that creates a table have no checksum: a bit that is flipped
there may show wrong rows.
"""

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, make_batches, run_batches
from tests.pipelines.engine.power.power_cuts import TableRows, read_rows, scratch_folder

from penstock.core.errors import PenstockError
from penstock.engine.tables.log_entries import find_entry_damage

PLAN = PLANS["fixed"]
SEED = 5
FLIPS_PER_FILE_KIND = 12
FILE_KINDS = {
    "intent": "stream/journal/*.intent.json",
    "outcome": "stream/journal/*.outcome.json",
    "state run": "stream/state/*/*.arrow",
    "data file": "warehouse/*/*/*.parquet",
    "log entry": "warehouse/*/*/_delta_log/*[1-9].json",
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
    for _ in range(FLIPS_PER_FILE_KIND):
        with scratch_folder() as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            file = random_source.choice(sorted(copy.glob(FILE_KINDS[kind])))
            flip = flip_random_bit(file, random_source)
            bench = Bench(PLAN, copy)
            try:
                if kind != "log entry":  # only a start of the stream verifies those
                    assert read_rows(bench) == rows_before, flip
                run_batches(bench, batches=make_batches())
                assert read_rows(bench) == rows_after, flip
            except (PenstockError, OSError, DeltaError, pa.ArrowException):
                found += 1
    assert found or kind == "intent"  # an intent with an outcome is not read any more


def checked_size(content: bytearray, file: Path) -> int:
    """Return how many bytes of a file have a checksum: in a data file, those before the footer."""
    is_data_file = file.suffix == ".parquet"
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little") if is_data_file else len(content)


def flip_random_bit(file: Path, random_source: random.Random) -> str:
    content = bytearray(file.read_bytes())
    position, bit = random_source.randrange(checked_size(content, file)), random_source.randrange(8)
    content[position] ^= 1 << bit
    file.write_bytes(content)
    return f"{file.name}, byte {position}, bit {bit}"


@pytest.mark.parametrize("content", [b'{"a\xec":1}', b'{"a":"\xec"}', b"\xff", b"", b'{"a":1}\n{"b'])
def test_bytes_that_are_no_text_are_damage(content: bytes) -> None:
    assert find_entry_damage(content, is_first=False)
