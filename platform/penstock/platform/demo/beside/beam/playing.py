"""A script of elements, watermarks and clocks, played to a program of Beam's and to the same program here."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.plan import Plan
from penstock.pipelines.spark.rerun import Rerun, rerun
from penstock.pipelines.spark.stored.held import held_records
from penstock.pipelines.state.columns import NEVER
from penstock.platform.demo.beside.beam.programs_here import PROGRAMS
from penstock.platform.errors import DemoError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
SCRIPTS: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "scripts.yaml").read_text("utf-8"))
OTHER_FIELDS: dict[str, dict[str, Any]] = {
    "lines": {},
    "clicks": {"id": "1", "session": "s", "page": "/", "action": "view"},
    "sensors": {"id": "1", "site": "s", "humidity": 50.0},
}
"""What the contracts of the topics ask for besides."""
BEFORE = -(10**12)
"""A watermark before every element, which the script gives in the place of the one that records would make."""
PATIENCE_S = 120
Panes = list[dict[str, Any]]


def in_beam(python: Path, program: str, folder: Path) -> Panes:
    """Return every pane that Beam's runner shows of a script."""
    script, panes = folder / "script.json", folder / "panes.jsonl"
    script.write_text(json.dumps([plain(step) for step in SCRIPTS[program]]), "utf-8")
    panes.unlink(missing_ok=True)
    command = [str(python), str(HERE / "programs_in_beam.py"), program, str(script), str(panes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise DemoError(f"{program} failed in Beam, by {' '.join(command)}:\n{done.stderr}")
    return [json.loads(line) for line in panes.read_text("utf-8").splitlines()]


def plain(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step as JSON can say it."""
    return {"watermark": "inf"} if step.get("watermark") == float("inf") else step


def batches(plan: Plan, script: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Rerun]]:
    """Return a script as records of a topic, and batches of them: watermarks and clocks are ticks."""
    topic = topic_of(plan.sources[0])
    records: list[dict[str, Any]] = []
    found: list[Rerun] = []
    clock, watermark = 0, BEFORE
    for step in script:
        match plain(step):
            case {"elements": elements}:
                begin = len(records)
                records += [{**OTHER_FIELDS[topic], **one, "at": one["at"] * 1_000} for one in elements]
                found.append(Rerun(clock, (Range(topic, 0, begin, len(records)),), watermark))
                continue
            case {"watermark": "inf"}:
                watermark = NEVER
            case {"watermark": at}:
                watermark = at * 1_000
            case {"clock": seconds}:
                clock += seconds * 1_000
        found.append(Rerun(clock, watermark=watermark))
    return records, found


def here(spark: "SparkSession", program: str, folder: Path) -> Panes:
    """Return every pane that the engine shows of a script."""
    plan = PROGRAMS[program].plan
    records, cuts = batches(plan, SCRIPTS[program])
    held = held_records(spark, {topic_of(plan.sources[0]): [json.dumps(one).encode() for one in records]})
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
