"""Runs a script of elements, watermarks and processing times in Beam and in Penstock."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.comparisons.beam.programs_in_penstock import PROGRAMS
from tests.pipelines.memory_topics import create_memory_source

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.history.reexecute import BatchToReexecute, reexecute_batches
from penstock.engine.plan.stages import Plan
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE_FOLDER = Path(__file__).parent
SCRIPTS_BY_PROGRAM: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (PACKAGE_FOLDER / "scripts.yaml").read_text("utf-8")
)
DEFAULT_FIELDS: dict[str, dict[str, Any]] = {
    "lines": {},
    "clicks": {"id": "1", "session": "s", "page": "/", "action": "view"},
    "sensors": {"id": "1", "site": "s", "humidity": 50.0},
}
"""Values of the fields that the contracts require but the scripts do not set."""
INITIAL_WATERMARK_MS = -(10**12)
"""A watermark before every element; scripts set the watermark explicitly."""
BEAM_TIMEOUT_S = 120
PaneRows = list[dict[str, Any]]


def play_in_beam(python: Path, program: str, folder: Path) -> PaneRows:
    """Return every pane that Beam's runner emits for a script."""
    script, panes = folder / "script.json", folder / "panes.jsonl"
    script.write_text(json.dumps([to_json_step(step) for step in SCRIPTS_BY_PROGRAM[program]]), "utf-8")
    panes.unlink(missing_ok=True)
    command = [str(python), str(PACKAGE_FOLDER / "programs_in_beam.py"), program, str(script), str(panes)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=BEAM_TIMEOUT_S, check=False)
    if process.returncode != 0:
        raise RuntimeError(f"{program} failed in Beam ({' '.join(command)}):\n{process.stderr}")
    return [json.loads(line) for line in panes.read_text("utf-8").splitlines()]


def to_json_step(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step as valid JSON data."""
    return {"watermark": "inf"} if step.get("watermark") == float("inf") else step


def build_batches(
    plan: Plan, script: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[BatchToReexecute]]:
    """Return a script as records of a topic and batches; watermarks and processing times become empty batches."""
    topic = topic_of(plan.sources[0])
    records: list[dict[str, Any]] = []
    script_batches: list[BatchToReexecute] = []
    clock, watermark = 0, INITIAL_WATERMARK_MS
    for step in script:
        match to_json_step(step):
            case {"elements": elements}:
                start_offset = len(records)
                records += [
                    {**DEFAULT_FIELDS[topic], **element, "at": element["at"] * 1_000} for element in elements
                ]
                script_batches.append(
                    BatchToReexecute(clock, (OffsetRange(topic, 0, start_offset, len(records)),), watermark)
                )
                continue
            case {"watermark": "inf"}:
                watermark = MAX_TIMESTAMP_MS
            case {"watermark": watermark_seconds}:
                watermark = watermark_seconds * 1_000
            case {"clock": seconds}:
                clock += seconds * 1_000
        script_batches.append(BatchToReexecute(clock, watermark=watermark))
    return records, script_batches


def play_in_penstock(session: "SparkSession", program: str, folder: Path) -> PaneRows:
    """Return every pane that the engine emits for a script."""
    plan = PROGRAMS[program].plan
    records, script_batches = build_batches(plan, SCRIPTS_BY_PROGRAM[program])
    source = create_memory_source(
        session, {topic_of(plan.sources[0]): [json.dumps(record).encode() for record in records]}
    )
    panes = reexecute_batches(plan, session, source, script_batches, folder, lambda _: None).panes_of(
        plan.only_stage.name
    )
    (key,) = plan.only_stage.key
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
