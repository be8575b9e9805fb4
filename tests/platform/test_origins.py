"""From which fields a column is made, and which it shows, through whatever a pipeline does to them."""

import pytest

from penstock.engine.plan import Count, OfInput, Stage
from penstock.pipelines import catalog
from penstock.platform.lineage.column_origins import trace_column_origins
from penstock.platform.lineage.sql_projection import SelectItem, parse_select
from penstock.stream import collect, count, fixed, join, mean, read
from penstock.stream.pipeline import Pipeline

CARD, AMOUNT = ("cards", "card"), ("cards", "amount")


def shown(pipeline: Pipeline) -> dict[str, list[str]]:
    """The fields of payments that each column of the last stage shows."""
    plan = pipeline.write("told", mode="log").to_plan("told")
    return {
        name: sorted(field for _, field in origin.visible_fields)
        for name, origin in trace_column_origins(plan, plan.only_stage).items()
    }


def counted(pipeline: Pipeline, key: str) -> Pipeline:
    return pipeline.key(key).aggregate(n=count()).window(fixed("1 minute"))


ALL = sorted(column.name for column in catalog.load_plan("card_alerts").sources[0].columns)


@pytest.mark.parametrize(
    ("pipeline", "fields"),
    [
        (counted(read("cards"), "card"), ["card"]),
        (counted(read("cards").sql("SELECT *, card AS c FROM input"), "c"), ["card"]),
        (counted(read("cards").sql("SELECT *, upper(concat(card, '-x')) c FROM input AS i"), "c"), ["card"]),
        (counted(read("cards").sql("SELECT at, id, `merchant` FROM input"), "merchant"), ["merchant"]),
        (counted(read("cards").select(c="card", m="merchant"), "c"), ["card"]),
        (counted(read("cards").sql("SELECT *, 'x' AS c FROM input"), "c"), []),
        (counted(read("cards").sql("SELECT * FROM input WHERE card > 'a'"), "card"), ["card"]),
        (counted(read("cards").sql("SELECT *, c FROM input LATERAL VIEW explode(x) AS c"), "c"), ALL),
        (counted(read("cards").apply(lambda df: df), "card"), ["card"]),
        (counted(read("cards").apply(lambda df: df.withColumn("c", df.card)), "c"), ALL),
        (counted(read("cards").map(lambda row: row, returns={"c": "STRING"}), "c"), ALL),
    ],
)
def test_a_key_shows_what_it_was_made_from_whatever_it_is_called(
    pipeline: Pipeline, fields: list[str]
) -> None:
    (key, *_) = shown(pipeline).values()
    assert key == fields


def test_a_mean_is_made_from_what_it_does_not_show_and_a_count_from_nothing() -> None:
    what = read("cards").key("card").aggregate(n=count(), spent=mean("amount"), all=collect("amount"))
    plan = what.window(fixed("1 minute")).write("told").to_plan("told")
    found = trace_column_origins(plan, plan.only_stage)
    assert {
        name: (set(origin.source_fields), set(origin.visible_fields)) for name, origin in found.items()
    } == {
        "card": ({CARD}, {CARD}),
        "n": (set(), set()),
        "spent": ({AMOUNT}, set()),
        "all": ({AMOUNT}, {AMOUNT}),
    }


def test_a_joined_column_is_from_its_own_input_also_where_both_have_the_name() -> None:
    ours = read("cards").sql("SELECT *, merchant AS place FROM input")
    theirs = read("clicks").sql("SELECT *, page AS place, user AS who FROM input")
    both = join(ours, theirs, by="place", take={"card": "cards.card", "who": "clicks.who"})
    plan = both.window(fixed("1 minute")).write("told", mode="log").to_plan("told")
    found = {
        name: sorted(origin.visible_fields)
        for name, origin in trace_column_origins(plan, plan.only_stage).items()
    }
    assert found == {
        "place": [("cards", "merchant"), ("clicks", "page")],
        "card": [CARD],
        "who": [("clicks", "user")],
    }


def test_columns_of_shipped_pipelines_have_an_origin_unless_they_count() -> None:
    without = {
        f"{plan.name}.{stage.name}.{name}"
        for plan in map(catalog.load_plan, catalog.pipeline_names())
        for stage in plan.stages
        for name, origin in trace_column_origins(plan, stage).items()
        if not origin.source_fields and name not in counts(stage)
    }
    assert without == WITHOUT


def counts(stage: Stage) -> set[str]:
    """The columns of a stage that count records, of all inputs or of one."""
    of = {
        each.name: each.aggregate.aggregate if isinstance(each.aggregate, OfInput) else each.aggregate
        for each in stage.aggregates
    }
    return {name for name, aggregate in of.items() if isinstance(aggregate, Count)}


WITHOUT = {
    "activity.activity.what",
    "funnel.funnel.clicks",
}
"""A word that a pipeline gives itself, and what is made of counts."""


EVERY = SelectItem(None, frozenset())


def named(name: str, *names: str) -> SelectItem:
    return SelectItem(name, frozenset(names))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * FROM input", [EVERY]),
        ("select i.*, i.a b from input as i where a in ('x,y', 'FROM')", [EVERY, named("b", "i", "a")]),
        ("SELECT a, -- b, remark\n  round(e / 2) /* f */ AS g FROM input", [named("a", "a"), named("g", "e")]),
        ("SELECT `b c` AS d FROM input", [named("d", "b c")]),
        ("SELECT extract(hour FROM at) AS h FROM input", [named("h", "at", "hour", "from")]),
        ("SELECT i.a FROM input i", [named("a", "a")]),
        ("SELECT a + 1 FROM input", None),
        ("SELECT * EXCEPT (a) FROM input", None),
        ("SELECT explode(m) AS (k, v) FROM input", None),
        ("SELECT a FROM other", None),
        ("SELECT a FROM input UNION ALL SELECT b FROM input", None),
        ("SELECT a FROM input JOIN other USING (b)", None),
        ("SELECT a FROM (SELECT b AS a FROM input)", None),
        ("WITH x AS (SELECT 1) SELECT a FROM input", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_projection_is_read_where_its_text_tells(text: str, columns: list[SelectItem] | None) -> None:
    assert parse_select(text) == columns
