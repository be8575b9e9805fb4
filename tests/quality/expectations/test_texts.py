"""Dates in texts: SQL says of each what Python's `strptime` says."""

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.quality.errors import NotInStreamError
from penstock.quality.expectations.compile import broken_when
from penstock.quality.expectations.suite import Expectation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {"name": "STRING"}
FORMATS = [
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%d.%m.%y",
    "%d%m%Y",
    "%m/%d",
    "%d",
    "%I:%M %p",
    "%a %d %b %Y",
    "%A, %B %d, %Y",
    "%b %d",
    "%H%M%S",
    "%Y%%",
    "%m%d%H",
    "S%S \t[%M]",
]
SPOILING = [*"0123456789 -:./%TtsS\n\u00a0\u0664\u17f5\U0001d7d9\u017f\u212a\x1c", ""]


def texts(seed: int, of_each: int) -> list[str]:
    """Times in every format, and what comes of them when a sign is changed, lost or added, or several are."""
    chance = random.Random(seed)
    made = [
        "",
        " ",
        "2024-02-29",
        "2023-02-29",
        "1900-02-29",
        "0000-01-01",
        "29.2.00",
        "30.2.99",
        "Feb 29",
        "61",
    ]
    for told in FORMATS:
        for _ in range(of_each):
            at = datetime.fromtimestamp(chance.randrange(4_000_000_000), UTC).replace(
                day=chance.randrange(1, 29)
            )
            text = at.strftime(told)
            for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
                place = chance.randrange(len(text) + 1)
                text = text[:place] + chance.choice(SPOILING) + text[place + chance.choice([0, 1]) :]
            made.append(chance.choice([str, str.upper, str.lower])(text))
    return made


def reads(text: str, told: str) -> bool:
    try:
        datetime.strptime(text, told)  # noqa: DTZ007  # nothing is done with it
    except ValueError:
        return False
    return True


def follows(told: Any) -> Expectation:
    kwargs = {"column": "name", "strftime_format": told}
    return Expectation("expect_column_values_to_match_strftime_format", kwargs, "born")


@pytest.mark.spark
def test_a_text_follows_a_format_where_python_reads_it_so(spark: "SparkSession") -> None:
    content = texts(11, 150)
    checks = [broken_when(follows(told), TYPES) for told in FORMATS]
    rows = spark.createDataFrame(pa.table({"name": content}))
    said = (
        rows.selectExpr("name", *(f"NOT ({sql}) AS f{n}" for n, sql in enumerate(checks)))
        .toArrow()
        .to_pylist()
    )
    wrong = [
        (row["name"], told, row[f"f{n}"])
        for row in said
        for n, told in enumerate(FORMATS)
        if row[f"f{n}"] != reads(row["name"], told)
    ]
    assert wrong == []
    accepted = sum(row[f"f{n}"] for row in said for n in range(len(FORMATS)))
    assert len(content) / 5 < accepted < len(content) * 5


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("%Y-%j", "%j in '%Y-%j' is not known here"),
        ("%Y%", "% in '%Y%' is not known here"),
        ("noon", "has no directive"),
        ("%Y %y", "says %Y or %y more than once"),
        ("%d %d", "says %d more than once"),
        (7, "strftime_format is 7"),
    ],
)  # fmt: skip
def test_a_format_that_cannot_be_said_of_a_row_is_refused_by_name(told: Any, why: str) -> None:
    one = Expectation(
        "expect_column_values_to_match_strftime_format", {"column": "name", "strftime_format": told}, "born"
    )
    with pytest.raises(NotInStreamError, match="born") as refused:
        broken_when(one, TYPES)
    assert why in str(refused.value)
