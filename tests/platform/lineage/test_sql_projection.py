"""Parsing of select lists: columns, and the names that each refers to."""

import pytest
from sqlglot.parsers.spark import SparkParser

from penstock.platform.lineage.sql_projection import SelectItem, parse_select


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        # the columns of the input
        ("SELECT * FROM input", {"*": ""}),
        ("SELECT DISTINCT a, B FROM `Input`", {"a": "a", "B": "b"}),
        ("SELECT a FROM input ORDER BY b, c LIMIT 3;", {"a": "a"}),
        ("SELECT end, date, `select` FROM input", {"end": "end", "date": "date", "select": "select"}),
        # aliases
        ("SELECT a, -- b, remark\n  round(e / 2) /* f */ AS g FROM input", {"a": "a", "g": "e"}),
        ("SELECT `b-c` AS d, (a) e FROM input", {"d": "b-c", "e": "a"}),
        ("SELECT explode(m) AS (k, v) FROM input", {"k": "m", "v": "m"}),
        # qualified names
        ("select i.*, i.a b from input as i where a in ('x,y', 'FROM')", {"*": "", "b": "a i?"}),
        ("SELECT i.a FROM input i", {"a": "a i?"}),
        ("SELECT Input.*, INPUT.a, input.s.t AS c FROM input", {"*": "", "a": "a input?", "c": "s input?"}),
        ("SELECT input.a FROM input i", {"a": "input"}),
        ("SELECT s.t, s.t.u.v.w.x, xs[0].y AS z FROM input", {"t": "s", "x": "s", "z": "xs"}),
        # expressions
        ("SELECT 'a' AS b, \"c\" AS d, r'e' AS f, 1 AS g FROM input", {"b": "", "d": "", "f": "", "g": ""}),
        ("SELECT date '2020-01-01' AS a, interval 1 day AS b FROM input", {"a": "", "b": ""}),
        ("SELECT a + b * -c AS d, a || b AS e, a <=> b AS f FROM input", {"d": "a b c", "e": "a b", "f": "a b"}),
        ("SELECT NOT a IS NULL AND b BETWEEN c AND d OR e RLIKE f AS g FROM input", {"g": "a b c d e f"}),
        ("SELECT CASE a WHEN b THEN c ELSE d END AS e FROM input", {"e": "a b c d"}),
        ("SELECT CASE WHEN a > 1 THEN b END AS f FROM input", {"f": "a b"}),
        ("SELECT CAST(a AS decimal(10, 2)) AS b, c::string AS d FROM input", {"b": "a", "d": "c"}),
        ("SELECT try_cast(date AS struct<x: date>) AS f FROM input", {"f": "date"}),
        ("SELECT array(a, b)[c] AS d, map('x', a)['x'] AS e FROM input", {"d": "a b c", "e": "a"}),
        ("SELECT struct(a AS x, b).x AS c FROM input", {"c": "a b"}),
        # functions
        ("SELECT upper(concat(a, coalesce(b, 'x'))) AS c FROM input", {"c": "a b"}),
        ("SELECT extract(hour FROM at) AS h FROM input", {"h": "at"}),
        ("SELECT substring(a FROM b FOR c) AS d, trim(BOTH a FROM b) AS e FROM input", {"d": "a b c", "e": "a b"}),
        ("SELECT trunc(at, unit) AS a, to_date(a, f) AS c FROM input", {"a": "at unit", "c": "a f"}),
        ("SELECT transform(xs, x -> x.card + b) AS a FROM input", {"a": "xs b"}),
        ("SELECT exists(xs, x -> x > c) AS d FROM input", {"d": "xs c"}),
        ("SELECT count(*) AS a, count(DISTINCT b) AS c FROM input", {"a": "", "c": "b"}),
        ("SELECT sum(a) FILTER (WHERE b > 0) AS c FROM input", {"c": "a b"}),
        ("SELECT row_number() OVER (PARTITION BY a ORDER BY b DESC) AS c FROM input", {"c": "a b"}),
        # a name that Spark makes up
        ("SELECT a + 1 FROM input", None),
        ("SELECT xs[0].y FROM input", None),
        ("SELECT explode(m) FROM input", None),
        # other columns than the named ones
        ("SELECT * EXCEPT (a) FROM input", None),
        ("SELECT s.* FROM input", None),
        ("SELECT to_json(struct(*)) AS j FROM input", None),
        ("SELECT count(i.*) AS n FROM input i", None),
        ("SELECT identifier('card') AS c FROM input", None),
        # other tables and queries
        ("SELECT 1 AS a", None),
        ("SELECT a FROM other", None),
        ("SELECT a FROM other.input", None),
        ("SELECT x FROM input AS i(x, y)", None),
        ("SELECT a FROM input, other", None),
        ("SELECT a FROM input JOIN other USING (b)", None),
        ("SELECT a FROM input LATERAL VIEW explode(b) AS a", None),
        ("SELECT a FROM input UNION ALL SELECT b FROM input", None),
        ("SELECT a FROM input GROUP BY a", None),
        ("SELECT count(a) OVER w AS n FROM input WINDOW w AS (PARTITION BY b)", None),
        ("SELECT a FROM (SELECT b AS a FROM input)", None),
        ("SELECT (SELECT max(b) FROM input) AS a FROM input", None),
        ("SELECT a FROM input WHERE b IN (SELECT c FROM other)", None),
        ("WITH x AS (SELECT 1) SELECT a FROM input", None),
        ("SELECT a FROM input |> SELECT b", None),
        ("SELECT TRANSFORM(a) USING 'cat' AS (b) FROM input", None),
        ("SELECT a FROM input; SELECT b FROM input", None),
        # no query
        ("SELECT 'a FROM input", None),
        ("SELECT a b c FROM input", None),
        ("INSERT INTO other SELECT a FROM input", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_select_list_is_parsed(text: str, columns: dict[str, str] | None) -> None:
    """A name with a question mark qualifies another name, or is a column."""
    expected = None if columns is None else {name: set(names.split()) for name, names in columns.items()}
    items = parse_select(text)
    assert expected == (None if items is None else {item.name or "*": list_names(item) for item in items})


def list_names(item: SelectItem) -> set[str]:
    return {*item.referenced_names, *(f"{name}?" for name in item.possible_names)}


def test_every_argument_of_a_function_is_a_source() -> None:
    names = ["a0", "a1", "a2", "a3", "a4"]
    for function_name in {*SparkParser.FUNCTIONS, *SparkParser.FUNCTION_PARSERS} - {"EXTRACT"}:
        for count_of_names in range(1, len(names) + 1):
            arguments = names[:count_of_names]
            items = parse_select(f"SELECT {function_name}({', '.join(arguments)}) AS b FROM input")
            assert items is None or items == [SelectItem("b", frozenset(arguments))], function_name


@pytest.mark.parametrize(
    "keyword", ["fetch", "all", "interval", "any", "values", "array", "list", "timestamp", "at"]
)
def test_a_column_named_like_a_keyword_is_found(keyword: str) -> None:
    for expression in (
        keyword,
        f"upper({keyword})",
        f"{keyword}.b",
        f"{keyword}[0]",
        f"a + {keyword}",
        f"if({keyword}, 1, a)",
    ):
        items = parse_select(f"SELECT {expression} AS c FROM input")
        assert items is None or keyword in items[0].referenced_names


@pytest.mark.parametrize(
    "expression", [f"{'(' * 5000}a{')' * 5000}", "+".join(["a"] * 5000)], ids=["deep", "long"]
)
def test_a_deep_or_long_expression_does_not_fail(expression: str) -> None:
    assert parse_select(f"SELECT {expression} AS b FROM input") in (None, [SelectItem("b", frozenset("a"))])
