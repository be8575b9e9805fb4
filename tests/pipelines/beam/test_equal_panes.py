"""Three programs, written for Apache Beam and for this platform, show the same panes of the same script."""

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.pipelines.beam.environment import python_with_beam
from tests.pipelines.beam.programs_here import PROGRAMS
from tests.pipelines.stored import Held, held_records

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.plan import Plan
from penstock.pipelines.spark.rerun import Rerun, rerun
from penstock.pipelines.state.columns import NEVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
SCRIPTS: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "scripts.yaml").read_text("utf-8"))
OTHER_FIELDS = {
    "lines": {},
    "clicks": {"id": "1", "session": "s", "page": "/", "action": "view"},
    "sensors": {"id": "1", "site": "s", "humidity": 50.0},
}
"""What the contracts of the topics ask for besides."""
PATIENCE_S = 120


@pytest.fixture(scope="session")
def beam(pytestconfig: pytest.Config) -> Path:
    """A Python that has Beam; skipped by name, with the reason, where it cannot be had."""
    python, why = python_with_beam(pytestconfig.rootpath)
    if python is None:
        pytest.skip(why)
    return python


def in_beam(python: Path, program: str, folder: Path) -> list[dict[str, Any]]:
    """Every pane that Beam's runner shows of a script."""
    script, panes = folder / "script.json", folder / "panes.jsonl"
    script.write_text(json.dumps([plain(step) for step in SCRIPTS[program]]), "utf-8")
    command = [str(python), str(HERE / "programs_in_beam.py"), program, str(script), str(panes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in panes.read_text("utf-8").splitlines()]


def plain(step: dict[str, Any]) -> dict[str, Any]:
    return {"watermark": "inf"} if step.get("watermark") == float("inf") else step


def batches(plan: Plan, script: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Rerun]]:
    """A script as records of a topic, and batches of them: watermarks and clocks are ticks."""
    topic = topic_of(plan.sources[0])
    records: list[dict[str, Any]] = []
    found: list[Rerun] = []
    clock, watermark = 0, None
    for step in script:
        match plain(step):
            case {"elements": elements}:
                begin = len(records)
                records += [{**OTHER_FIELDS[topic], **one, "at": one["at"] * 1_000} for one in elements]
                span = Range(topic, 0, begin, len(records))
                found.append(Rerun(clock, (span,), BEFORE if watermark is None else watermark))
                continue
            case {"watermark": "inf"}:
                watermark = NEVER
            case {"watermark": at}:
                watermark = at * 1_000
            case {"clock": seconds}:
                clock += seconds * 1_000
        found.append(Rerun(clock, watermark=BEFORE if watermark is None else watermark))
    return records, found


BEFORE = -(10**12)
"""A watermark before every element, which the script gives in the place of the one that records would make."""


def here(spark: "SparkSession", program: str, folder: Path) -> list[dict[str, Any]]:
    """Every pane that the engine shows of a script."""
    plan = PROGRAMS[program].plan
    records, cuts = batches(plan, SCRIPTS[program])
    held: Held = held_records(
        spark, {topic_of(plan.sources[0]): [json.dumps(one).encode() for one in records]}
    )
    panes = rerun(plan, spark, held, cuts, folder, lambda _: None).of(plan.stage.name)
    (key,) = plan.stage.key
    return [
        {
            "key": row[key],
            "value": row["value"],
            "window": [round(row[bound].timestamp()) for bound in ("window_start", "window_end")],
            "pane": row["pane"],
            "timing": row["timing"],
        }
        for row in panes.to_pylist()
        if row["kind"] == "insert"
    ]


def counted(panes: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(pane, sort_keys=True) for pane in panes)


@pytest.mark.spark
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_this_platform_show_the_same_panes(
    spark: "SparkSession", beam: Path, tmp_path: Path, program: str
) -> None:
    theirs = in_beam(beam, program, tmp_path)
    ours = here(spark, program, tmp_path / "here")
    assert counted(ours) == counted(theirs)
    assert len(ours) > 5
