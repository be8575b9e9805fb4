"""The drawings of the Dataflow paper, its articles and the book, pane by pane, each when it is drawn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.conformance import ReferenceEngine, run_cases

FIGURES = yaml.safe_load((Path(__file__).parent / "figures.yaml").read_text(encoding="utf-8"))
NAMED = [(file, name) for file in FIGURES if file.endswith(".json") for name in FIGURES[file]]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_the_figure_comes_out_as_drawn(file: str, name: str) -> None:
    (verdict,) = run_cases(
        [figure_case(load_recorded_document(f"dataflow/{file}"), file, name)], ReferenceEngine()
    )
    assert verdict.is_ok, (verdict.expected, verdict.actual)


@pytest.mark.parametrize("file", [file for file in FIGURES if file.endswith(".json")])
def test_every_figure_is_run(file: str) -> None:
    drawn = {figure["id"] for figure in load_recorded_document(f"dataflow/{file}")["figures"]}
    assert drawn == set(FIGURES[file])


def figure_case(document: Any, file: str, name: str) -> dict[str, Any]:
    """The figure as a case: what happens at each time, and what is drawn there."""
    how = FIGURES["defaults"] | FIGURES[file][name]
    (figure,) = (figure for figure in document["figures"] if figure["id"] == name)
    outputs = figure["outputs"]
    drawn: dict[float, list[dict[str, Any]]] = {output["processing_time_min"]: [] for output in outputs}
    moments = sorted((drawn | happenings(document, how)).items())
    return {
        "id": name,
        "unit": "min",
        "window": FIGURES["windows"][how["window"]],
        "trigger": FIGURES["triggers"][how["trigger"]],
        "accumulation": how["accumulation"],
        "allowed_lateness": how["allowed_lateness"],
        "on_time_pane": how["on_time_pane"],
        "combine": "sum",
        "steps": [step for time, steps in moments for step in [*steps, {"expect": drawn_at(time, outputs)}]],
    }


def happenings(document: Any, how: dict[str, Any]) -> dict[float, list[dict[str, Any]]]:
    """What happens when. A firing at a time is drawn with what arrives at that time, so both are one batch."""
    steps: dict[float, list[dict[str, Any]]] = {time: [{"processing_time": time}] for time in how["ticks"]}
    for time, step in [*arrivals(document, how), *watermarks(document, how)]:
        (batch,) = steps.setdefault(time, [{"processing_time": time}])
        elements = [*batch.get("elements", []), *step.get("elements", [])]
        batch |= step | ({"elements": elements} if elements else {})
    return steps


def arrivals(document: Any, how: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    inputs = document.get("inputs") or document[how.get("order", "inputs_A")]
    extra = [document[how["extra"]]] if "extra" in how else []
    for item in [*inputs, *extra]:
        time = item["processing_time_min"]
        event_time = time + how["ingress"] if "ingress" in how else item["event_time_min"]
        yield time, {"elements": [{"key": "k", "value": item["value"], "ts": event_time}]}


def watermarks(document: Any, how: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    if "ingress" in how:
        yield from ((time, {"watermark": time + how["ingress"]}) for time in how["ticks"])
    elif how["watermark"] != "none":
        for step in document[f"watermark_{how['watermark']}_steps"]:
            yield step["processing_time_min"], {"watermark": step["watermark_min"]}
    if "ends" in how:
        yield how["ends"], {"watermark": "inf"}


def drawn_at(time: float, outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    drawn = (output for output in outputs if output["processing_time_min"] == time)
    return [
        {"window": output["window_min"], "sum": output["value"], "kind": output["kind"]}
        | ({"timing": output["timing"]} if "timing" in output else {})
        for output in drawn
    ]
