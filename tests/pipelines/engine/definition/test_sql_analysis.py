"""The columns and the unknown names of SQL steps, without Spark."""

import pytest
from tests.pipelines.engine.spark_queries import INPUT_COLUMNS, VALID_QUERIES

from penstock.engine.definition.sql_analysis import infer_select_columns
from penstock.engine.errors import DefinitionError

MISSPELT = {
    "SELECT country, amout FROM input": "'amout' (line 1, column 17 of the query). Did you mean 'amount'?",
    "SELECT *\nFROM input\nWHERE Contry = 'x'": "'Contry' (line 3, column 7 of the query). Did you mean 'country'",
    "SELECT i.amout FROM input i": "'amout' (line 1, column 10 of the query). Did you mean 'amount'?",
    "SELECT *, address.cty AS c FROM input": "no field 'cty' (line 1, column 19 of the query). Did you mean 'city'",
    "SELECT *, transform(items, x -> x + amout) AS t FROM input": "no column 'amout'",
    "SELECT *, extract(hour FROM orderd_at) AS h FROM input": "Did you mean 'ordered_at'?",
    "SELECT *, b + 1 AS c FROM (SELECT *, amount AS bb FROM input)": "there is no column 'b'",
    "SELECT * FROM inputt": "there is no table 'inputt' (line 1, column 15 of the query). Did you mean 'input'?",
}


@pytest.mark.parametrize("query", MISSPELT)
def test_a_misspelt_name_is_reported_with_its_place_and_the_nearest_name(query: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        infer_select_columns(query, INPUT_COLUMNS)
    assert MISSPELT[query] in str(raised.value)


def test_every_unknown_column_of_a_query_is_reported() -> None:
    with pytest.raises(DefinitionError) as raised:
        infer_select_columns("SELECT amout, contry FROM input", INPUT_COLUMNS)
    assert [problem.field for problem in raised.value.problems] == ["sql", "sql"]


@pytest.mark.parametrize("query", VALID_QUERIES)
def test_a_query_that_spark_accepts_is_accepted(query: str) -> None:
    infer_select_columns(query, INPUT_COLUMNS)


def test_result_columns_keep_their_spelling_and_the_types_that_are_certain() -> None:
    query = (
        "SELECT I.AMOUNT, price AS Cost, cast(unit AS INT) AS u, upper(unit) AS Up, address.City FROM input I"
    )
    assert infer_select_columns(query, INPUT_COLUMNS) == {
        "AMOUNT": "double",
        "Cost": "decimal(10,2)",
        "u": "INT",
        "Up": None,
        "City": None,
    }


@pytest.mark.parametrize(
    "query", ["SELECT inline(lines) FROM input", "SELECT amount + 1 FROM input", "SELEC *"]
)
def test_columns_that_the_query_does_not_name_are_left_to_spark(query: str) -> None:
    assert infer_select_columns(query, INPUT_COLUMNS) is None
