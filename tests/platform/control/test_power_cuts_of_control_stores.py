"""A power cut takes no transaction of a SQLite control store back that was committed.

SQLite writes by itself, so its files are not on the recorded disk. The tests check the setting that makes it sync
each commit, and that what a cut leaves behind the synced part of its log does no harm.
"""

import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.platform.control.test_records import build_batch

from penstock.platform.control import open_control_store
from penstock.platform.control.reports import read_batch_history

FULL_SYNC = 2
BATCHES = 4


def test_each_commit_is_synced_on_every_connection(tmp_path: Path) -> None:
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as store:
        for _ in range(2):  # the second one is a new connection
            with store.engine.connect() as connection:
                assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == FULL_SYNC
                assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            store.engine.dispose()


@pytest.mark.parametrize("torn", ["nothing", "zeros", "garbage", "part of a commit"])
def test_committed_batches_survive_what_a_cut_tore_behind_them(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "control.db"
    with closing(open_control_store(f"sqlite:///{path}")) as store:
        for number in range(BATCHES):
            store.record_batch(build_batch(number))
            committed = path.with_name("control.db-wal").read_bytes()
            cut = tmp_path / f"cut{number}"
            cut.mkdir()
            shutil.copy(path, cut / path.name)
            store.record_batch(build_batch(number, stream="other"))
            later = path.with_name("control.db-wal").read_bytes()[len(committed) :]
            tail = {
                "nothing": b"",
                "zeros": bytes(len(later)),
                "garbage": random.Random(number).randbytes(len(later)),
                "part of a commit": later[: 2 * len(later) // 3],
            }[torn]
            (cut / "control.db-wal").write_bytes(committed + tail)
            with closing(open_control_store(f"sqlite:///{cut / path.name}")) as restarted:
                assert [batch.batch_id for batch in read_batch_history(restarted, "s")] == list(
                    range(number + 1)
                )
