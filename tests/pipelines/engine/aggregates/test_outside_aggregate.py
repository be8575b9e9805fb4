"""Aggregates outside of the source tree work everywhere as those of the engine do, without an edit."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.installed_kinds import installed_kinds
from tests.pipelines.engine.aggregates.typed_elements import FIELDS, compute_rows
from tests.pipelines.outside_kinds import AGGREGATES, AGGREGATES_REFERENCE

from penstock import stream
from penstock.conformance.reference import InputRecord, Pane, evaluate_bounded
from penstock.conformance.reference.aggregates import compute_aggregate
from penstock.conformance.reference.input_records import StageElement
from penstock.engine.aggregates import Aggregate, AggregateContext, AggregateOutput
from penstock.engine.errors import DefinitionError, PlanFormatError
from penstock.engine.explain import explain
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.windows.fixed import Fixed
from penstock.platform.lineage.result_columns import list_stage_values
from penstock.stream.keyword_registries import AGGREGATE_KEYWORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT: dict[str, Any] = {
    "read": "sensors",
    "key": "device",
    "window": {"fixed": "1 minute"},
    "write": {"table": "readings", "mode": "latest"},
}
SITES = ("a", "b", "c", None)


@pytest.fixture(autouse=True)
def _outside_aggregates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"outside_aggregates": AGGREGATES, "outside_aggregates_reference": AGGREGATES_REFERENCE}
    with installed_kinds(
        tmp_path,
        monkeypatch,
        AGGREGATE_KEYWORDS,
        modules,
        most_frequent="outside_aggregates:most_frequent",
        checksum="outside_aggregates:checksum",
    ):
        yield


def parse(**columns: str) -> stream.Pipeline:
    return stream.from_document(DOCUMENT | {"aggregate": columns})


def test_python_and_yaml_give_one_plan_by_entry_point_and_by_module() -> None:
    pipeline = (
        stream.read("sensors")
        .key("device")
        .aggregate(site=stream.most_frequent("site"), ids=stream.aggregates.checksum("at"))
        .window(stream.fixed("1 minute"))
        .write("readings", mode="latest")
    )
    module = "outside_aggregates"
    assert parse(site="most_frequent(site)", ids="checksum(at)").plan == pipeline.plan
    assert parse(site=f"{module}:most_frequent(site)", ids=f"{module}:checksum(at)").plan == pipeline.plan
    assert (
        parse(site=f"{module}:MostFrequent(field=site)", ids=f"{module}:Checksum(at)").plan == pipeline.plan
    )


def test_it_can_be_restricted_to_one_input() -> None:
    document = DOCUMENT | {"read": ["sensors", "cards"], "key": []}
    for call in ("of(sensors, checksum(at))", "of(sensors, outside_aggregates:checksum(at))"):
        plan = stream.from_document(document | {"aggregate": {"n": call}}).plan
        aggregate = plan.only_stage.aggregates[0].aggregate
        assert aggregate == stream.of("sensors", stream.checksum("at"))
        assert aggregate.describe() == "checksum of at of sensors only"


def test_a_plan_stores_it_as_module_and_class() -> None:
    plan = parse(site="most_frequent(site)").plan
    stored = json.loads(json.dumps(plan_to_dict(plan)))
    aggregate = stored["plan"]["stages"][0]["aggregates"][0]["aggregate"]
    assert aggregate == {"kind": "outside_aggregates:MostFrequent", "field": "site"}
    assert plan_from_dict(stored) == plan
    assert fingerprint(plan_from_dict(stored)) == fingerprint(plan)
    aggregate["kind"] = "removed_package:MostFrequent"
    with pytest.raises(PlanFormatError, match=r"removed_package:MostFrequent.*Install its module"):
        plan_from_dict(stored)


def test_explain_and_lineage_describe_it() -> None:
    plan = parse(site="most_frequent(site)", ids="checksum(at)").plan
    text = str(explain(plan))
    assert "site: most frequent site" in text
    assert "site (all values)" in text
    assert "ids (a few numbers)" in text
    values = list_stage_values(plan.only_stage)
    assert [value.description for value in values] == ["most_frequent(site)", "checksum(at)"]
    assert [value.resolve_type({"site": "string", "at": "bigint"}) for value in values] == [
        "string",
        "bigint",
    ]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("most_frequnt(site)", "no aggregate 'most_frequnt'. Did you mean 'most_frequent'?"),
        ("most_frequent()", "Its arguments are: field"),
        ("outside_aggregates:most_frequent(size=3)", "Its arguments are: field"),
        ("outside_aggregates:dataclass(site)", "is not an aggregate"),
        ("outside_aggregates:XorMerger(site)", "is not an aggregate"),
        ("no_such_module:most_frequent(site)", "cannot be loaded"),
        ("outside_aggregates.most_frequent(site)", "Write a call, as in mean(temperature)"),
        ("mean(most_frequent(site))", "Write a call, as in mean(temperature)"),
        ("most_frequent(pressure)", "Known fields:"),
    ],
)
def test_a_wrong_definition_names_the_fix(call: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        _ = parse(t=call).plan
    assert refused.value.field.startswith("aggregate.t")
    assert problem in str(refused.value)


def test_the_reference_names_what_it_does_not_know() -> None:
    with pytest.raises(NotImplementedError, match="does not know object"):
        compute_aggregate(object(), [])  # type: ignore[call-overload]


@pytest.mark.parametrize("over_changes", [False, True])
def test_its_state_gives_what_the_reference_computes(over_changes: bool) -> None:
    rng = random.Random(4)
    elements = [
        StageElement(
            (),
            number,
            ("readings", 0, number),
            dict.fromkeys(FIELDS.names)
            | {"word": rng.choice(["a", "b", "", None]), "long": rng.choice([None, 2**40, number])},
        )
        for number in range(60)
    ]
    field_types = {field.name: field.type for field in FIELDS}
    retracted = elements[:25] if over_changes else []
    weights = [1] * len(elements) + [-1] * len(retracted)
    for aggregate in (stream.most_frequent("word"), stream.checksum("long")):
        accumulator = aggregate.build_accumulator(AggregateContext("out", field_types, over_changes))
        rows = compute_rows(accumulator, [*elements, *retracted], [0] * len(weights), 1, weights)
        expected = compute_aggregate(aggregate, elements[len(retracted) :])
        assert accumulator.pane_values(rows).tolist() == [expected]


def plan_of(
    outputs: Sequence[tuple[str, Aggregate]], outputs_of_sites: Sequence[tuple[str, Aggregate]]
) -> Plan:
    """Readings per device and ten seconds, which may be retracted, and over them per minute."""
    columns = (Column("device", "STRING"), Column("site", "STRING"), Column("at", "BIGINT"))
    source = PlanSource("readings", TopicOrigin("readings"), columns, "at")
    trigger = stream.repeatedly(stream.after_count(1))
    first = Stage(
        "devices", ("readings",), Fixed(10_000),
        tuple(AggregateOutput(name, aggregate) for name, aggregate in outputs),
        key=("device",), trigger=trigger, lateness=10**12, accumulation="retracting",
        sinks=(LatestValues("devices"),),
    )  # fmt: skip
    second = Stage(
        "minutes", ("devices",), Fixed(60_000),
        tuple(AggregateOutput(name, aggregate) for name, aggregate in outputs_of_sites),
        trigger=trigger, lateness=10**12, accumulation="retracting", sinks=(LatestValues("minutes"),),
    )  # fmt: skip
    return Plan("outside", (source,), (first, second))


@pytest.mark.spark
def test_a_bounded_run_on_spark_gives_the_panes_of_the_reference(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from penstock.engine.history.bounded_run import BoundedRunConfig, run_bounded
    from penstock.engine.spark.bounded_sources.file_formats import open_file_source

    rng = random.Random(5)
    records = [
        {"device": f"d{rng.randrange(3)}", "site": rng.choice(SITES), "at": rng.randrange(90_000)}
        for _ in range(300)
    ]
    (tmp_path / "files").mkdir()
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (tmp_path / "files" / "part.json").write_text(lines, encoding="utf-8")
    aggregates = [("site", stream.most_frequent("site")), ("ids", stream.checksum("at"))]
    plan = plan_of(aggregates, [("site", stream.most_frequent("site")), ("ids", stream.checksum("ids"))])
    source = open_file_source(spark, plan.sources[0], str(tmp_path / "files"), "json")
    config = BoundedRunConfig(tmp_path / "run", tmp_path / "tables", 70)
    run_bounded(plan, spark, source, config, lambda: 5_000_000, lambda _outcome, _batches: None)
    inputs = [InputRecord("readings", 0, offset, record) for offset, record in enumerate(records)]
    outcome = evaluate_bounded(plan, inputs, clock=5_000_000)
    for stage in plan.stages:
        panes = outcome.stage_panes.get(stage.name, outcome.panes)
        stored = DeltaTable(tmp_path / "tables" / "latest" / stage.name).to_pyarrow_table()
        assert read_values(stored, stage.key) == final_values(panes)


def read_values(table: pa.Table, key: Sequence[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {
        (*(row[name] for name in key), int(row["window_start"].timestamp() * 1000)): (row["site"], row["ids"])
        for row in table.to_pylist()
    }


def final_values(panes: Sequence[Pane]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The values of the last pane of each window."""
    return {
        (*pane.key, int(pane.start)): tuple(value for _, value in pane.values)
        for pane in panes
        if pane.kind == "insert"
    }
