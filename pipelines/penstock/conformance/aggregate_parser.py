"""Parses the columns that a case compares and their aggregates."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.conformance.field_validation import invalid_field_error
from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.sum import Sum
from penstock.engine.errors import TranscriptError

CASE_AGGREGATES: dict[str, Aggregate] = {
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
AGGREGATE_ALIASES = {
    "avg": "mean",
    "average": "mean",
    "list": "values",
    "collect": "values",
    "to_list": "values",
}
TIMESTAMP_AGGREGATES: dict[str, Aggregate] = {"earliest": Min("output_time"), "latest": Max("output_time")}


def parse_outputs(
    case: Mapping[str, Any], expected: Iterable[Mapping[str, Any]]
) -> tuple[AggregateOutput, ...]:
    """Return a column for each aggregate that the case compares: from `combine` or from its panes.

    A pane counts as changed by its content, so no other aggregate is computed.
    """
    expected_columns = {name for pane in expected for name in pane if name in CASE_AGGREGATES}
    combine = parse_combine(case)
    names = [name for name in CASE_AGGREGATES if name in expected_columns or name == combine]
    columns = [AggregateOutput(name, CASE_AGGREGATES[name]) for name in names or ["values"]]
    timestamp_aggregate = TIMESTAMP_AGGREGATES.get(parse_timestamp_combiner(case))
    return (*columns, *((AggregateOutput("stamp", timestamp_aggregate),) if timestamp_aggregate else ()))


def parse_combine(case: Mapping[str, Any]) -> str | None:
    """Return the aggregate of the whole case."""
    combine = case.get("combine", case.get("aggregate"))
    if combine is None:
        return None
    name = AGGREGATE_ALIASES.get(str(combine), str(combine))
    if name not in CASE_AGGREGATES:
        raise TranscriptError(f"unknown aggregate {combine!r}; write one of {', '.join(CASE_AGGREGATES)}")
    return name


def parse_timestamp_combiner(case: Mapping[str, Any]) -> str:
    """Return which time a pane gets: `earliest`, `latest`, or `end` of the window."""
    text = str(case.get("timestamp_combiner", "end")).lower()
    combiner = next((choice for choice in ("earliest", "latest", "end", "eow") if choice in text), None)
    if combiner is None:
        raise invalid_field_error(
            "`timestamp_combiner`", case["timestamp_combiner"], "one of earliest, latest, end"
        )
    return combiner
