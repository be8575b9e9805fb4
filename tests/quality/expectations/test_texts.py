"""Dates and patterns in texts: SQL says of each what `strptime` says, and what the library says in a database."""

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from penstock.quality.errors import NotCheckableInStreamError
from penstock.quality.expectations.gx_library import load_library, suppress_warnings
from penstock.quality.expectations.sql_compiler import compile_unexpected
from penstock.quality.expectations.suite import Expectation, Suite

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
    checks = [compile_unexpected(follows(told), TYPES) for told in FORMATS]
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
        ("%Y-%j", "%j in '%Y-%j' is not supported"),
        ("%Y%", "% in '%Y%' is not supported"),
        ("noon", "has no directive"),
        ("%Y %y", "has %Y or %y more than once"),
        ("%d %d", "has %d more than once"),
        (7, "strftime_format is 7"),
    ],
)  # fmt: skip
def test_a_format_that_cannot_be_said_of_a_row_is_refused_by_name(told: Any, why: str) -> None:
    one = Expectation(
        "expect_column_values_to_match_strftime_format", {"column": "name", "strftime_format": told}, "born"
    )
    with pytest.raises(NotCheckableInStreamError, match="born") as refused:
        compile_unexpected(one, TYPES)
    assert why in str(refused.value)


LIKES: list[tuple[str, dict[str, Any]]] = [
    ("match_like_pattern", {"like_pattern": pattern})
    for pattern in ("a%", "%b", "_", "%", "", "a_b", "A%", "%\\%", "%.%", "[a]%", "%\u00e9%", "'%")
] + [
    ("match_like_pattern", {"like_pattern": "%#%", "escape": "#"}),
    ("not_match_like_pattern", {"like_pattern": "%#_##%", "escape": "#"}),
    ("not_match_like_pattern", {"like_pattern": "%\n%"}),
    ("match_like_pattern_list", {"like_pattern_list": ["a%", "%b"]}),
    ("match_like_pattern_list", {"like_pattern_list": ["a%", "%b"], "match_on": "all"}),
    ("not_match_like_pattern_list", {"like_pattern_list": ["a%", "%|%"], "escape": "|"}),
]  # fmt: skip


@pytest.mark.spark
def test_a_pattern_matches_where_the_library_says_so_in_a_database(
    spark: "SparkSession", tmp_path: Path
) -> None:
    chance = random.Random(3)
    signs = [*"aAbB%_#\\.[]'\u00e9|\n", "\u65e5", "\U0001f600"]
    content = [
        None,
        *("".join(chance.choices(signs, k=chance.randrange(5))) for _ in range(190)),
    ]  # the library shows 200 of a kind
    suite = Suite("topics/rows", tuple(
        Expectation(f"expect_column_values_to_{kind}", {"column": "name", **kwargs}, f"e{n}")
        for n, (kind, kwargs) in enumerate(LIKES)
    ))  # fmt: skip
    rows = spark.createDataFrame(pa.table({"row": range(len(content)), "name": content}))
    checks = (
        f"coalesce({compile_unexpected(one, TYPES)}, false) AS {one.name}" for one in suite.expectations
    )
    told = rows.selectExpr("row", *checks).toArrow().to_pylist()
    address = f"sqlite:///{tmp_path / 'rows.db'}"
    event.listen(sa.Engine, "connect", minding_case)
    try:
        engine = sa.create_engine(address)
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE texts (number INTEGER, name TEXT)"))
            values = [{"number": number, "name": text} for number, text in enumerate(content)]
            connection.execute(sa.text("INSERT INTO texts VALUES (:number, :name)"), values)
        with suppress_warnings():
            source = load_library().context.data_sources.add_or_update_sqlite(
                name="texts", connection_string=address
            )
            asset = source.add_table_asset(name="texts", table_name="texts")
            batch = asset.add_batch_definition_whole_table("all").get_batch()
            form = {"result_format": "COMPLETE", "unexpected_index_column_names": ["number"]}
            result = batch.validate(load_library().build_suite(suite), result_format=form)
    finally:
        event.remove(sa.Engine, "connect", minding_case)
    for one in result.results:
        config = one.expectation_config
        assert not one.exception_info.get("raised_exception"), (config, one.exception_info)
        ours = Counter(content[row["row"]] for row in told if row[config.meta["name"]])
        assert one.result["unexpected_count"] == ours.total(), config
        assert Counter(one.result["unexpected_list"]) == ours, config


def minding_case(connection: Any, _record: Any) -> None:
    """Have SQLite tell a from A, as Spark and most databases do."""
    connection.execute("PRAGMA case_sensitive_like = ON")


@pytest.mark.parametrize(
    ("kwargs", "why"),
    [
        ({"like_pattern": "a#b", "escape": "#"}, "has # before another character"),
        ({"like_pattern": "a#", "escape": "#"}, "has # before another character"),
        ({"like_pattern": 7}, "the pattern is 7"),
        ({"like_pattern": "a", "escape": "%"}, "escape is '%'"),
    ],
)  # fmt: skip
def test_a_pattern_that_is_none_is_refused_by_name(kwargs: dict[str, Any], why: str) -> None:
    one = Expectation("expect_column_values_to_match_like_pattern", {"column": "name", **kwargs}, "named")
    with pytest.raises(NotCheckableInStreamError, match="named") as refused:
        compile_unexpected(one, TYPES)
    assert why in str(refused.value)
