"""Arrow types of SQL types, nested ones included."""

import pyarrow as pa
import pytest

from penstock.engine.definition.sql_arrow_types import find_arrow_type
from penstock.engine.plan.column_types import is_declarable_type


@pytest.mark.parametrize(
    ("sql_type", "arrow_type"),
    [
        ("bigint", pa.int64()),
        ("DECIMAL(12, 2)", pa.decimal128(12, 2)),
        ("decimal(38,38)", pa.decimal128(38, 38)),
        ("DATE", pa.date32()),
        ("ARRAY<ARRAY<INT>>", pa.list_(pa.list_(pa.int32()))),
        ("MAP<STRING, DECIMAL(3, 1)>", pa.map_(pa.string(), pa.decimal128(3, 1))),
        (
            "STRUCT<`city`: STRING, days: ARRAY<DATE>>",
            pa.struct([pa.field("city", pa.string()), pa.field("days", pa.list_(pa.date32()))]),
        ),
    ],
)
def test_a_sql_type_has_an_arrow_type(sql_type: str, arrow_type: pa.DataType) -> None:
    assert find_arrow_type(sql_type) == arrow_type


@pytest.mark.parametrize(
    "sql_type",
    ["", "WORD", "DECIMAL", "DECIMAL(39, 2)", "DECIMAL(2, 3)", "ARRAY<>", "MAP<STRING>", "STRUCT<a>"],
)
def test_another_text_has_none(sql_type: str) -> None:
    assert find_arrow_type(sql_type) is None


@pytest.mark.parametrize(
    ("sql_type", "is_declarable"),
    [("DECIMAL(12, 2)", True), ("array<date>", True), ("DECIMAL(40, 2)", False), ("STRUCT<a: INT>", False)],
)
def test_a_function_may_return_decimals_and_dates(sql_type: str, *, is_declarable: bool) -> None:
    assert is_declarable_type(sql_type) is is_declarable
