"""The fields that a column is computed from, and those whose values it shows."""

import pytest

from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.plan.stages import Stage
from penstock.pipelines import catalog
from penstock.platform.lineage.column_origins import trace_column_origins
from penstock.stream import collect, count, fixed, join, mean, read
from penstock.stream.pipeline import Pipeline

CARD, AMOUNT = ("cards", "card"), ("cards", "amount")


def list_visible_fields(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the visible fields of each column of the last stage."""
    plan = pipeline.write("told", mode="log").to_plan("told")
    return {
        name: sorted(field for _, field in origin.visible_fields)
        for name, origin in trace_column_origins(plan, plan.only_stage).items()
    }


def count_by(pipeline: Pipeline, key: str) -> Pipeline:
    return pipeline.key(key).aggregate(n=count()).window(fixed("1 minute"))


ALL = sorted(column.name for column in catalog.load_plan("card_alerts").sources[0].columns)


@pytest.mark.parametrize(
    ("pipeline", "fields"),
    [
        (count_by(read("cards"), "card"), ["card"]),
        (count_by(read("cards").sql("SELECT *, card AS c FROM input"), "c"), ["card"]),
        (count_by(read("cards").sql("SELECT *, upper(concat(card, '-x')) c FROM input AS i"), "c"), ["card"]),
        (count_by(read("cards").sql("SELECT at, id, `merchant` FROM input"), "merchant"), ["merchant"]),
        (count_by(read("cards").select(c="card", m="merchant"), "c"), ["card"]),
        (count_by(read("cards").sql("SELECT *, 'x' AS c FROM input"), "c"), []),
        (count_by(read("cards").sql("SELECT * FROM input WHERE card > 'a'"), "card"), ["card"]),
        (
            count_by(read("cards").sql("SELECT *, upper(card) AS c, concat(C, '-x') AS d FROM input"), "d"),
            ["card"],
        ),
        (
            count_by(read("cards").sql("SELECT *, merchant AS card2, card2 AS d FROM input"), "d"),
            ["merchant"],
        ),
        (
            count_by(read("cards").sql("SELECT *, id AS merchant, merchant AS d FROM input"), "d"),
            ["merchant"],
        ),
        (count_by(read("cards").sql("SELECT *, card.number AS c FROM input card"), "c"), ["card"]),
        (count_by(read("cards").sql("SELECT *, to_json(struct(*)) AS c FROM input"), "c"), ALL),
        (count_by(read("cards").sql("SELECT *, identifier('card') AS c FROM input"), "c"), ALL),
        (
            count_by(read("cards").apply(lambda df: df).sql("SELECT *, input.card AS c FROM input"), "c"),
            ["card"],
        ),
        (
            count_by(
                read("cards").sql("SELECT *, c FROM input LATERAL VIEW explode(split(card, '-')) AS c"), "c"
            ),
            ALL,
        ),
        (count_by(read("cards").apply(lambda df: df), "card"), ["card"]),
        (count_by(read("cards").apply(lambda df: df.withColumn("c", df.card)), "c"), ALL),
        (count_by(read("cards").map(lambda row: row, returns={"c": "STRING"}), "c"), ALL),
    ],
)
def test_a_key_shows_the_fields_it_is_computed_from(pipeline: Pipeline, fields: list[str]) -> None:
    (key, *_) = list_visible_fields(pipeline).values()
    assert key == fields


def test_a_mean_has_hidden_source_fields_and_a_count_has_none() -> None:
    pipeline = read("cards").key("card").aggregate(n=count(), spent=mean("amount"), all=collect("amount"))
    plan = pipeline.window(fixed("1 minute")).write("told").to_plan("told")
    origins = trace_column_origins(plan, plan.only_stage)
    assert {
        name: (set(origin.source_fields), set(origin.visible_fields)) for name, origin in origins.items()
    } == {
        "card": ({CARD}, {CARD}),
        "n": (set(), set()),
        "spent": ({AMOUNT}, set()),
        "all": ({AMOUNT}, {AMOUNT}),
    }


def test_a_joined_column_originates_from_its_own_input() -> None:
    cards = read("cards").sql("SELECT *, merchant AS place FROM input")
    clicks = read("clicks").sql("SELECT *, page AS place, user AS who FROM input")
    both = join(cards, clicks, by="place", take={"card": "cards.card", "who": "clicks.who"})
    plan = both.window(fixed("1 minute")).write("told", mode="log").to_plan("told")
    origins = {
        name: sorted(origin.visible_fields)
        for name, origin in trace_column_origins(plan, plan.only_stage).items()
    }
    assert origins == {
        "place": [("cards", "merchant"), ("clicks", "page")],
        "card": [CARD],
        "who": [("clicks", "user")],
    }


def test_columns_of_shipped_pipelines_have_origins_unless_they_count() -> None:
    without = {
        f"{plan.name}.{stage.name}.{name}"
        for plan in map(catalog.load_plan, catalog.pipeline_names())
        for stage in plan.stages
        for name, origin in trace_column_origins(plan, stage).items()
        if not origin.source_fields and name not in list_count_columns(stage)
    }
    assert without == WITHOUT_ORIGIN


def list_count_columns(stage: Stage) -> set[str]:
    """Return the columns of a stage that count records."""
    aggregates = {
        output.name: output.aggregate.aggregate if isinstance(output.aggregate, OfInput) else output.aggregate
        for output in stage.aggregates
    }
    return {name for name, aggregate in aggregates.items() if isinstance(aggregate, Count)}


WITHOUT_ORIGIN = {
    "activity.activity.what",
    "funnel.funnel.clicks",
}
"""A constant of a pipeline, and a value computed from counts."""
