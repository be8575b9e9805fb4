"""The analysis of SQL without Spark agrees with Spark's analyzer, and Spark's errors become one line."""

from typing import TYPE_CHECKING

import pytest
from tests.pipelines.engine.spark_queries import INPUT_COLUMNS, INVALID_QUERIES, VALID_QUERIES

from penstock.engine.definition.sql_analysis import infer_select_columns
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import ApplyStep, SqlStep
from penstock.engine.spark.transform.lookup_join import give_no_rows
from penstock.engine.spark.transform.steps import apply_steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def records(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame([], ", ".join(f"`{name}` {kind}" for name, kind in INPUT_COLUMNS.items()))


def test_the_analysis_gives_the_columns_and_types_of_spark(records: "DataFrame") -> None:
    known_count = 0
    internal_columns = ["'t' AS _topic", "0 AS _partition", "0L AS _offset"]
    with_internal_columns = records.selectExpr("*", *internal_columns)
    for query in VALID_QUERIES:
        inferred = infer_select_columns(query, INPUT_COLUMNS)
        # Some of the queries select no internal column, which `apply_steps` would refuse.
        with_internal_columns.createOrReplaceTempView("input")
        schema = records.sparkSession.sql(query).schema
        expected = {field.name: field.dataType.simpleString() for field in schema}
        if inferred is not None:
            known_count += 1
            assert list(inferred) == [name for name in expected if not name.startswith("_")], query
            for name, kind in inferred.items():
                assert kind is None or kind.lower().replace(" ", "") == expected[name], (query, name)
    assert known_count >= len(VALID_QUERIES) * 0.8


def test_a_query_that_spark_refuses_fails_with_one_line_without_internals(records: "DataFrame") -> None:
    for query in INVALID_QUERIES:
        with pytest.raises(DefinitionError) as raised:
            apply_steps(records, (SqlStep(query),), lambda _: None)
        message = str(raised.value)
        assert message.startswith("sql: "), query
        assert "\n" not in message, query
        assert "#" not in message, query
        assert "SQLSTATE" not in message, query


def test_the_lines_name_what_is_unknown(records: "DataFrame") -> None:
    messages = {
        "SELECT country, amout FROM input": "there is no column 'amout' (line 1, column 17 of the query). "
        "Did you mean 'amount'?",
        "SELECT *, uper(country) AS c FROM input": "there is no function 'uper'",
        "SELECT *, lines[0].skuu AS c FROM input": "there is no field 'skuu'. Did you mean 'sku'?",
        "SELECT * FROM inputt": "there is no table 'inputt'",
    }
    for query, message in messages.items():
        with pytest.raises(DefinitionError) as raised:
            apply_steps(records, (SqlStep(query),), lambda _: None)
        assert message in str(raised.value)


def rename_column(records: "DataFrame") -> "DataFrame":
    return records.selectExpr("country", "amount AS euros")


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        ({"country": "STRING", "euros": "DOUBLE"}, None),
        (
            {"country": "STRING", "euros": "DECIMAL(12, 2)"},
            r"apply.returns.euros: .* returned DOUBLE, not DECIMAL",
        ),
        (
            {"country": "STRING", "euro": "DOUBLE"},
            r"apply.returns: .* no column 'euro'. Did you mean 'euros'\?",
        ),
    ],
)
def test_a_result_is_compared_with_its_declaration(
    records: "DataFrame", returns: dict[str, str], message: str | None
) -> None:
    step = ApplyStep(function_ref(rename_column), tuple(Column(*column) for column in returns.items()))
    if message is None:
        assert apply_steps(records, [step], give_no_rows).columns == ["country", "euros"]
        return
    with pytest.raises(DefinitionError, match=message):
        apply_steps(records, [step], give_no_rows)
