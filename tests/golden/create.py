"""Makes the golden home of a release: `make golden`."""

import json
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.golden.home import GoldenHome
from tests.golden.pack import ARCHIVE_NAME, pack_home
from tests.golden.records import READINGS_PER_ROUND, ROUNDS, write_rounds
from tests.golden.restore import ORIGIN_FILE, count_rows
from tests.golden.rounds import ARCHIVES, PIPELINES, TOPICS, live_through

from penstock.engine.archive.topic_reader import fetch_topic_id
from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker

FOLDER = Path(__file__).parent
JARS = FOLDER.parents[1] / ".penstock" / "jars"
LIVED_ROUNDS = 4
README = """# Golden home of {version}
Made by `python -m tests.golden.create {version}`, with the code of that release, and never changed since.
`tests/golden/test_golden_home.py` opens it with the present code and compares it with a stream that was never
interrupted.

`{archive}` has the home of a user in the middle of {all_rounds} rounds of records. {rounds} rounds were read,
then the host was drained. Windows, sessions, timers and joins were open.

| path | holds |
|---|---|
| `penstock.toml`, `catalog/`, `topics/`, `round_files.py` | what the user wrote |
| `records/` | the records of all rounds; a round has {readings} readings, duplicates, late ones and limits |
| `origin.json` | the version, the rounds that were read, and the ids of the topics |
| `.penstock/streams` | plan, journal, state, ids and Spark's checkpoint of each stream |
| `.penstock/warehouse` | the Delta tables; the archives have every record of the topics, with its offset |
| `.penstock/control.db`, `producers`, `registry` | control store, delivery ledgers, schemas |

Streams: {streams}.

| table | rows |
|---|---|
{tables}

It has no published topic and no data of the broker: the test sends the archived records to a fresh broker. Paths
and the name of the machine were replaced.
"""


def main(version: str = "") -> None:
    """Make the home, and put it into the folder of the version; by default that of this checkout."""
    version = (
        version
        or tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    )
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "home"
        shutil.copytree(FOLDER / "definitions", root, ignore=shutil.ignore_patterns("__pycache__"))
        write_rounds(root / "records")
        with LocalBroker.in_directory(Path(scratch) / "broker", ensure_jars(JARS, ["kafka"])) as broker:
            home = GoldenHome(root, Path(scratch) / "code", broker, JARS)
            home.penstock("topics", "apply")
            live_through(home, range(1, LIVED_ROUNDS + 1))
            ids = {topic: fetch_topic_id(home.client, topic) for topic in TOPICS}
        origin = {"version": version, "rounds": LIVED_ROUNDS, "all_rounds": ROUNDS, "topic_ids": ids}
        (root / ORIGIN_FILE).write_text(json.dumps(origin, indent=2), "utf-8")
        rows = count_rows(home.warehouse)
        (FOLDER / version).mkdir(exist_ok=True)
        pack_home(root, FOLDER / version / ARCHIVE_NAME)
    (FOLDER / version / "README.md").write_text(_describe(version, rows), "utf-8")


def _describe(version: str, rows: dict[str, int]) -> str:
    return README.format(
        version=version,
        archive=ARCHIVE_NAME,
        rounds=LIVED_ROUNDS,
        all_rounds=ROUNDS,
        readings=READINGS_PER_ROUND,
        streams=", ".join(f"`{stream}`" for stream in (*PIPELINES, *ARCHIVES)),
        tables="\n".join(f"| `{table}` | {count} |" for table, count in rows.items()),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
