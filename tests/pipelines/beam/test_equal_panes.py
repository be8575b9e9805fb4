"""Three programs, written for Apache Beam and for this platform, show the same panes of the same script."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
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
from penstock.pipelines.reference import Batch, Evaluator, Record
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


@pytest.fixture(scope="module")
def theirs(beam: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """What Beam's runner shows of a program; each is run once."""
    return cache(lambda program: in_beam(beam, program, tmp_path_factory.mktemp(program)))


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


def by_the_contract(program: str) -> list[dict[str, Any]]:
    """Every pane that the reference evaluator shows of a script."""
    plan = PROGRAMS[program].plan
    records, cuts = batches(plan, SCRIPTS[program])
    evaluator = Evaluator(plan)
    shown: list[dict[str, Any]] = []
    for number, cut in enumerate(cuts):
        inside = [offset for span in cut.ranges for offset in range(span.start, span.end)]
        held = tuple(Record(plan.sources[0].name, 0, offset, records[offset]) for offset in inside)
        watermark = cut.watermark
        assert watermark is not None
        batch = Batch(number, cut.clock, held, watermark=watermark, ends=watermark == NEVER)
        for pane in evaluator.run(batch).panes:
            bounds = [round(bound / 1_000) for bound in (pane.start, pane.end)]
            ((_, value),) = pane.values
            row = {"key": pane.key[0], "value": value, "window": bounds, "pane": pane.pane}
            shown.append({**row, "timing": pane.timing})
    return shown


def counted(panes: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(pane, sort_keys=True) for pane in panes)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_the_contract_show_the_same_panes(
    theirs: Callable[[str], list[dict[str, Any]]], program: str
) -> None:
    ours = by_the_contract(program)
    assert counted(ours) == counted(theirs(program))
    assert len(ours) > 5


@pytest.mark.spark
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_this_platform_show_the_same_panes(
    spark: "SparkSession", theirs: Callable[[str], list[dict[str, Any]]], tmp_path: Path, program: str
) -> None:
    ours = here(spark, program, tmp_path / "here")
    assert counted(ours) == counted(theirs(program))
    assert len(ours) > 5
