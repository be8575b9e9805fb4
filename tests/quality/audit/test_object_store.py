"""The audit of a stream in an object store that was killed between two commits."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, set_s3a_options
from tests.quality.audit.audited_stream import AuditedStream, find_states

from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.storage import ObjectStorePath, parse_storage_path
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.table_change import TableChange
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
COMMIT, UNTIL_READ = StreamTables.commit, StreamRunner.run_until_read


class KillAfterFirstTable:
    """Fails once, after the first table of a batch was committed."""

    done = False

    def commit(
        self, tables: StreamTables, number: int, changes: Mapping[str, TableChange], clock: int
    ) -> None:
        if self.done:
            COMMIT(tables, number, changes, clock)
            return
        self.done = True
        COMMIT(tables, number, dict(list(changes.items())[:1]), clock)
        raise OSError("simulated kill")

    def run_until_read(self, runner: StreamRunner, records: int) -> None:
        if not self.done:
            with pytest.raises(OSError, match="simulated kill"):
                UNTIL_READ(runner, records)
        UNTIL_READ(runner, records)


def test_a_killed_stream_passes_and_a_lost_file_is_found(
    spark: "SparkSession",
    broker: LocalBroker,
    bucket: ObjectStorePath,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_s3a_options(spark, bucket)
    one, kill = AuditedStream(spark, broker, "stored-away", tmp_path, elsewhere=bucket), KillAfterFirstTable()
    monkeypatch.setattr(StreamTables, "commit", lambda *args: KillAfterFirstTable.commit(kill, *args))
    monkeypatch.setattr(
        StreamRunner, "run_until_read", lambda *args: KillAfterFirstTable.run_until_read(kill, *args)
    )
    one.run(6_000)
    report = one.audit()
    assert [one for one in report.verdicts if one.state != "passed"] == []
    assert not (tmp_path / "warehouse").exists()
    lost: ObjectStorePath | Path = parse_storage_path(
        open_delta_table(bucket / "latest/minutes").file_uris()[0], bucket.store_config
    )
    lost.unlink()
    assert find_states(one.audit())["files"] == "failed"
