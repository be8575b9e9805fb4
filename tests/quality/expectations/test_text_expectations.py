"""Date formats and LIKE patterns in SQL, compared with `strptime` and with the library on SQLite."""

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
NOISE = [*"0123456789 -:./%TtsS\n\u00a0\u0664\u17f5\U0001d7d9\u017f\u212a\x1c", ""]


def generate_texts(seed: int, per_format: int) -> list[str]:
    """Generate times in every format, some with changed, missing or extra characters."""
    rng = random.Random(seed)
    texts = [
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
    for time_format in FORMATS:
        for _ in range(per_format):
            at = datetime.fromtimestamp(rng.randrange(4_000_000_000), UTC).replace(day=rng.randrange(1, 29))
            text = at.strftime(time_format)
            for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
                index = rng.randrange(len(text) + 1)
                text = text[:index] + rng.choice(NOISE) + text[index + rng.choice([0, 1]) :]
            texts.append(rng.choice([str, str.upper, str.lower])(text))
    return texts


def can_parse(text: str, time_format: str) -> bool:
    try:
        datetime.strptime(text, time_format)  # noqa: DTZ007  # nothing is done with it
    except ValueError:
        return False
    return True


def match_format(time_format: Any) -> Expectation:
    kwargs = {"column": "name", "strftime_format": time_format}
    return Expectation("expect_column_values_to_match_strftime_format", kwargs, "born")


@pytest.mark.spark
def test_a_text_matches_a_format_if_strptime_parses_it(spark: "SparkSession") -> None:
    content = generate_texts(11, 150)
    checks = [compile_unexpected(match_format(time_format), TYPES) for time_format in FORMATS]
    rows = spark.createDataFrame(pa.table({"name": content}))
    results = (
        rows.selectExpr("name", *(f"NOT ({sql}) AS f{n}" for n, sql in enumerate(checks)))
        .toArrow()
        .to_pylist()
    )
    mismatches = [
        (row["name"], time_format, row[f"f{n}"])
        for row in results
        for n, time_format in enumerate(FORMATS)
        if row[f"f{n}"] != can_parse(row["name"], time_format)
    ]
    assert mismatches == []
    accepted = sum(row[f"f{n}"] for row in results for n in range(len(FORMATS)))
    assert len(content) / 5 < accepted < len(content) * 5


@pytest.mark.parametrize(
    ("time_format", "reason"),
    [
        ("%Y-%j", "%j in '%Y-%j' is not supported"),
        ("%Y%", "% in '%Y%' is not supported"),
        ("noon", "has no directive"),
        ("%Y %y", "has %Y or %y more than once"),
        ("%d %d", "has %d more than once"),
        (7, "strftime_format is 7"),
    ],
)  # fmt: skip
def test_an_unsupported_format_is_refused_by_name(time_format: Any, reason: str) -> None:
    expectation = Expectation(
        "expect_column_values_to_match_strftime_format",
        {"column": "name", "strftime_format": time_format},
        "born",
    )
    with pytest.raises(NotCheckableInStreamError, match="born") as refused:
        compile_unexpected(expectation, TYPES)
    assert reason in str(refused.value)


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
def test_a_like_pattern_matches_as_in_the_library(spark: "SparkSession", tmp_path: Path) -> None:
    rng = random.Random(3)
    characters = [*"aAbB%_#\\.[]'\u00e9|\n", "\u65e5", "\U0001f600"]
    content = [
        None,
        *("".join(rng.choices(characters, k=rng.randrange(5))) for _ in range(190)),
    ]  # the library shows 200 of a kind
    suite = Suite("topics/rows", tuple(
        Expectation(f"expect_column_values_to_{kind}", {"column": "name", **kwargs}, f"e{n}")
        for n, (kind, kwargs) in enumerate(LIKES)
    ))  # fmt: skip
    rows = spark.createDataFrame(pa.table({"row": range(len(content)), "name": content}))
    checks = (
        f"coalesce({compile_unexpected(expectation, TYPES)}, false) AS {expectation.name}"
        for expectation in suite.expectations
    )
    results = rows.selectExpr("row", *checks).toArrow().to_pylist()
    address = f"sqlite:///{tmp_path / 'rows.db'}"
    event.listen(sa.Engine, "connect", enable_case_sensitivity)
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
        event.remove(sa.Engine, "connect", enable_case_sensitivity)
    for expectation in result.results:
        config = expectation.expectation_config
        assert not expectation.exception_info.get("raised_exception"), (config, expectation.exception_info)
        unexpected = Counter(content[row["row"]] for row in results if row[config.meta["name"]])
        assert expectation.result["unexpected_count"] == unexpected.total(), config
        assert Counter(expectation.result["unexpected_list"]) == unexpected, config


def enable_case_sensitivity(connection: Any, _record: Any) -> None:
    """Make LIKE of SQLite case-sensitive, as in Spark."""
    connection.execute("PRAGMA case_sensitive_like = ON")


@pytest.mark.parametrize(
    ("kwargs", "reason"),
    [
        ({"like_pattern": "a#b", "escape": "#"}, "has # before another character"),
        ({"like_pattern": "a#", "escape": "#"}, "has # before another character"),
        ({"like_pattern": 7}, "the pattern is 7"),
        ({"like_pattern": "a", "escape": "%"}, "escape is '%'"),
    ],
)  # fmt: skip
def test_an_invalid_like_pattern_is_refused_by_name(kwargs: dict[str, Any], reason: str) -> None:
    expectation = Expectation(
        "expect_column_values_to_match_like_pattern", {"column": "name", **kwargs}, "named"
    )
    with pytest.raises(NotCheckableInStreamError, match="named") as refused:
        compile_unexpected(expectation, TYPES)
    assert reason in str(refused.value)
