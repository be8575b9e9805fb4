"""An audit finds flipped bits that Delta and Parquet have no checksum for; so does a query."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.quality.audit.recorded_stream import create_scope, run_stream

from penstock.engine.storage.file_access import open_delta_table
from penstock.quality.audit.checks.files_check import check_files
from penstock.query.errors import DamagedRowsError
from penstock.query.sql_query import run_query

TABLE = "latest/stream"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A finished stream."""
    return run_stream(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def bench(finished: Bench, tmp_path: Path) -> Bench:
    """A copy of the finished stream, to be damaged."""
    shutil.copytree(finished.folder, tmp_path / "copy")
    return Bench(finished.plan, tmp_path / "copy", finished.outcomes)


def find_damage(bench: Bench) -> str:
    outcome = check_files(create_scope(bench))
    return outcome.summary if outcome.state == "failed" else ""


def test_a_flipped_bit_in_a_footer_fails_the_audit_and_queries(bench: Bench) -> None:
    assert not find_damage(bench)
    file = Path(open_delta_table(bench.folder / "warehouse" / TABLE).file_uris()[0])
    content = bytearray(file.read_bytes())
    content[-40] ^= 4
    file.write_bytes(content)
    assert find_damage(bench) == f"{TABLE}: {file}: the checksum of its footer is wrong"
    with pytest.raises(DamagedRowsError, match=r"table stream: .*: the checksum of its footer is wrong"):
        run_query(bench.folder / "warehouse", "SELECT * FROM stream")


def test_a_flipped_name_in_the_entry_that_creates_a_table_fails_the_audit_and_queries(bench: Bench) -> None:
    """The column was null in all rows, and no check noticed."""
    entry = bench.folder / "warehouse" / TABLE / "_delta_log" / f"{0:020d}.json"
    content = entry.read_bytes()
    assert b'\\"most\\"' in content
    entry.write_bytes(content.replace(b'\\"most\\"', b'\\"mosv\\"'))
    assert "its schema lacks the column most of" in find_damage(bench)
    with pytest.raises(DamagedRowsError, match="its schema lacks the column most"):
        run_query(bench.folder / "warehouse", "SELECT * FROM stream")


def test_a_checkpoint_that_differs_from_its_log_fails_the_audit(bench: Bench) -> None:
    table = DeltaTable(bench.folder / "warehouse" / TABLE)
    table.create_checkpoint()
    (checkpoint,) = (bench.folder / "warehouse" / TABLE / "_delta_log").glob("*.checkpoint.parquet")
    actions = pq.read_table(checkpoint)
    is_add = pc.is_valid(pc.struct_field(actions.column("add"), "path"))
    adds = actions.filter(is_add)
    pq.write_table(pa.concat_tables([actions.filter(pc.invert(is_add)), adds.slice(1)]), checkpoint)
    assert "has no bytes by the checkpoint, and" in find_damage(bench)
