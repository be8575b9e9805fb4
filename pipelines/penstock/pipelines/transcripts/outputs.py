"""Which columns a case compares, and the aggregates that make them."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.plan.aggregates import (
    Aggregate,
    Collect,
    Count,
    Distinct,
    First,
    Last,
    Max,
    Mean,
    Min,
    Output,
    Sum,
)
from penstock.pipelines.transcripts.form import wrong

AGGREGATES: dict[str, Aggregate] = {
    "values": Collect("value"),
    "sum": Sum("value"),
    "count": Count(),
    "mean": Mean("value"),
    "min": Min("value"),
    "max": Max("value"),
    "first": First("value"),
    "last": Last("value"),
    "distinct": Distinct("value"),
}
OTHER_NAMES = {"avg": "mean", "average": "mean", "list": "values", "collect": "values", "to_list": "values"}
STAMPS: dict[str, Aggregate] = {"earliest": Min("output_time"), "latest": Max("output_time")}


def outputs_of(case: Mapping[str, Any], expected: Iterable[Mapping[str, Any]]) -> tuple[Output, ...]:
    """Return a column for each aggregate that the case compares: by `combine`, or by what its panes carry.

    What a pane shows decides whether it has changed, so nothing is computed that is not asked for.
    """
    carried = {name for pane in expected for name in pane if name in AGGREGATES}
    combine = combined(case)
    names = [name for name in AGGREGATES if name in carried or name == combine]
    columns = [Output(name, AGGREGATES[name]) for name in names or ["values"]]
    stamp = STAMPS.get(stamp_of(case))
    return (*columns, *((Output("stamp", stamp),) if stamp else ()))


def combined(case: Mapping[str, Any]) -> str | None:
    """Return the aggregate that the whole case names."""
    word = case.get("combine", case.get("aggregate"))
    if word is None:
        return None
    name = OTHER_NAMES.get(str(word), str(word))
    if name not in AGGREGATES:
        raise TranscriptError(f"the aggregate {word!r} is not known; write one of {', '.join(AGGREGATES)}")
    return name


def stamp_of(case: Mapping[str, Any]) -> str:
    """Return which element gives a pane its time: `earliest`, `latest`, or `end` for the window's own."""
    word = str(case.get("timestamp_combiner", "end")).lower()
    found = next((known for known in ("earliest", "latest", "end", "eow") if known in word), None)
    if found is None:
        raise wrong("`timestamp_combiner`", case["timestamp_combiner"], "one of earliest, latest, end")
    return found
