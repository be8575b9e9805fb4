"""The home of each release opens with the present code, and its streams go on as if nothing had happened."""

import shutil
from pathlib import Path

import pytest
from tests.golden.home import GoldenHome
from tests.golden.pack import ARCHIVE_NAME, find_machine_names, unpack_home
from tests.golden.restore import read_origin, read_tables, restore_topics
from tests.golden.rounds import PIPELINES, live_through

from penstock.infra.local_broker import LocalBroker

VERSIONS = sorted(path.parent.name for path in Path(__file__).parent.glob(f"*/{ARCHIVE_NAME}"))


@pytest.mark.timeout(1800)  # eight rounds, and two audits
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("version", VERSIONS)
def test_streams_of_a_golden_home_go_on_like_uninterrupted_ones(
    version: str,
    tmp_path: Path,
    jar_directory: Path,
    spark_jar_paths: list[Path],
    kafka_jar_paths: list[Path],
) -> None:
    archive = Path(__file__).parent / version / ARCHIVE_NAME
    golden, fresh = tmp_path / "golden", tmp_path / "fresh"
    for root in (golden, fresh):
        unpack_home(archive, root)
    shutil.rmtree(fresh / ".penstock")
    origin = read_origin(golden)
    with LocalBroker.in_directory(tmp_path / "golden-broker", kafka_jar_paths) as broker:
        home = GoldenHome(golden, tmp_path / "golden-code", broker, jar_directory)
        home.penstock("topics", "apply")
        restore_topics(home)
        live_through(home, range(origin["rounds"] + 1, origin["all_rounds"] + 1))
        resumed = read_tables(home.warehouse)
        for stream in PIPELINES:
            home.penstock("audit", stream)
    with LocalBroker.in_directory(tmp_path / "fresh-broker", kafka_jar_paths) as broker:
        home = GoldenHome(fresh, tmp_path / "fresh-code", broker, jar_directory)
        home.penstock("topics", "apply")
        live_through(home, range(1, origin["all_rounds"] + 1))
        uninterrupted = read_tables(home.warehouse)
    assert resumed.keys() == uninterrupted.keys()
    for table, rows in uninterrupted.items():
        assert resumed[table] == rows, table


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_home_does_not_name_the_machine_that_made_it(version: str, tmp_path: Path) -> None:
    unpack_home(Path(__file__).parent / version / ARCHIVE_NAME, tmp_path)
    assert find_machine_names(tmp_path) == []
    assert b"/tmp/" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
