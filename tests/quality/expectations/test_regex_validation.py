"""Regular expressions that Java refuses are refused with the reason."""

from random import Random
from typing import TYPE_CHECKING

import pytest

from penstock.quality.expectations.regex_validation import find_regex_fault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAULTS = {
    "(": "unclosed (",
    "a)": "unmatched )",
    "[a": "unclosed [",
    "[]": "unclosed [",
    "[z-a]": "the range z-a is reversed",
    "*a": "nothing to repeat before *",
    "a|+": "nothing to repeat before +",
    "a**": "nothing to repeat before *",
    "(?:?)": "nothing to repeat before ?",
    "a{": "{ without a count; write a literal brace as \\{",
    "a{,2}": "{ without a count; write a literal brace as \\{",
    "a{3,1}": "the count {3,1} is reversed",
    "\\": "trailing backslash",
    "\\y": "\\y is not an escape",
    "[\\y]": "\\y is not an escape",
    "\\p{Lu": "\\p needs an argument",
    "(?P<year>a)": "(?P< is not a group; write a named group as (?<name>...)",
}
VALID = [
    *("", "^a$", "a{2}", "a{2,}?", "a++b", "a*+", "a?+", "(?i)k", "(?i:k)", "(?<year>a)\\k<year>", "(?<!a)b"),
    *("(?>a)", "[]a]", "[^]a]", "[a-]", "[-a]", "[a[b-c]]", "[a-z&&[^b]]", "\\Q(\\E", "\\x{1F600}", "\\u00e9"),
    *("(?x) ( # a comment with (\n a)", "\\p{L}", "\\07", "\\R", "\\h+", "^*", "]", "}", "\\{", "\\-", "é"),
]  # fmt: skip
PIECES = [
    *r"ab^$.|()[]{}*+?-\,:=!<>",
    *(r"\d", r"\p{L}", r"\y", r"\x{41}", r"\b", r"\[", r"\Q(\E", r"\1", r"\0", r"\07", "é", "\U0001f600", " ", "#"),
    *("(?:", "(?=", "(?i)", "(?<n>", "(?P<n>", "(?x)", "(?>", "(?<=", "(?<!", "&&", "z-a", "a-", "\n"),
    *("{2}", "{2,}", "{1,3}", "{,2}", "{3,1}", "[a-z]", "[^", "[]", "[[:alpha:]]"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "fault"), FAULTS.items(), ids=FAULTS)
def test_an_invalid_expression_has_its_fault(expression: str, fault: str) -> None:
    assert find_regex_fault(expression) == fault


@pytest.mark.parametrize("expression", VALID)
def test_a_valid_expression_has_no_fault(expression: str) -> None:
    assert find_regex_fault(expression) is None


@pytest.mark.spark
def test_java_refuses_every_faulty_expression(spark: "SparkSession") -> None:
    assert spark._jvm is not None
    pattern, rng = spark._jvm.java.util.regex.Pattern, Random(7)
    generated = ["".join(rng.choices(PIECES, k=rng.randrange(1, 7))) for _ in range(2_000)]
    faulty = [expression for expression in (*FAULTS, *generated) if find_regex_fault(expression) is not None]
    assert len(faulty) > 500
    assert [expression for expression in faulty if compiles(pattern, expression)] == []
    assert all(compiles(pattern, expression) for expression in VALID)


def compiles(pattern: object, expression: str) -> bool:
    from pyspark.errors import IllegalArgumentException

    try:
        pattern.compile(expression)  # type: ignore[attr-defined]  # a class of Java
    except IllegalArgumentException:
        return False
    return True
