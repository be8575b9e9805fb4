"""The figures of the Dataflow paper, its articles and the book, pane by pane."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.conformance import ReferenceEngine, run_cases

FIGURES = yaml.safe_load((Path(__file__).parent / "figures.yaml").read_text(encoding="utf-8"))
FIGURE_NAMES = [(file, name) for file in FIGURES if file.endswith(".json") for name in FIGURES[file]]


@pytest.mark.parametrize(("file", "name"), FIGURE_NAMES)
def test_a_figure_gives_its_drawn_panes(file: str, name: str) -> None:
    (verdict,) = run_cases(
        [build_figure_case(load_recorded_document(f"dataflow/{file}"), file, name)], ReferenceEngine()
    )
    assert verdict.is_ok, (verdict.expected, verdict.actual)


@pytest.mark.parametrize("file", [file for file in FIGURES if file.endswith(".json")])
def test_every_figure_is_run(file: str) -> None:
    drawn = {figure["id"] for figure in load_recorded_document(f"dataflow/{file}")["figures"]}
    assert drawn == set(FIGURES[file])


def build_figure_case(document: Any, file: str, name: str) -> dict[str, Any]:
    """Build the case of a figure: the steps at each time, and the panes drawn there."""
    options = FIGURES["defaults"] | FIGURES[file][name]
    (figure,) = (figure for figure in document["figures"] if figure["id"] == name)
    outputs = figure["outputs"]
    drawn: dict[float, list[dict[str, Any]]] = {output["processing_time_min"]: [] for output in outputs}
    steps_by_time = sorted((drawn | collect_steps(document, options)).items())
    return {
        "id": name,
        "unit": "min",
        "window": FIGURES["windows"][options["window"]],
        "trigger": FIGURES["triggers"][options["trigger"]],
        "accumulation": options["accumulation"],
        "allowed_lateness": options["allowed_lateness"],
        "on_time_pane": options["on_time_pane"],
        "combine": "sum",
        "steps": [
            step
            for time, steps in steps_by_time
            for step in [*steps, {"expect": panes_drawn_at(time, outputs)}]
        ],
    }


def collect_steps(document: Any, options: dict[str, Any]) -> dict[float, list[dict[str, Any]]]:
    """Return the steps by time. A firing is drawn with what arrives at its time, so both are one batch."""
    steps: dict[float, list[dict[str, Any]]] = {
        time: [{"processing_time": time}] for time in options["ticks"]
    }
    for time, step in [*iter_arrivals(document, options), *iter_watermarks(document, options)]:
        (batch,) = steps.setdefault(time, [{"processing_time": time}])
        elements = [*batch.get("elements", []), *step.get("elements", [])]
        batch |= step | ({"elements": elements} if elements else {})
    return steps


def iter_arrivals(document: Any, options: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    inputs = document.get("inputs") or document[options.get("order", "inputs_A")]
    extra = [document[options["extra"]]] if "extra" in options else []
    for item in [*inputs, *extra]:
        time = item["processing_time_min"]
        event_time = time + options["ingress"] if "ingress" in options else item["event_time_min"]
        yield time, {"elements": [{"key": "k", "value": item["value"], "ts": event_time}]}


def iter_watermarks(document: Any, options: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    if "ingress" in options:
        yield from ((time, {"watermark": time + options["ingress"]}) for time in options["ticks"])
    elif options["watermark"] != "none":
        for step in document[f"watermark_{options['watermark']}_steps"]:
            yield step["processing_time_min"], {"watermark": step["watermark_min"]}
    if "ends" in options:
        yield options["ends"], {"watermark": "inf"}


def panes_drawn_at(time: float, outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    drawn = (output for output in outputs if output["processing_time_min"] == time)
    return [
        {"window": output["window_min"], "sum": output["value"], "kind": output["kind"]}
        | ({"timing": output["timing"]} if "timing" in output else {})
        for output in drawn
    ]
