"""A damaged statement is another pipeline, or is refused by a message with a place; no other error ends it."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.stream.sql.test_sql_page import name_of, pair_examples

from penstock.engine.errors import DefinitionError
from penstock.stream.sql_loader.document import load_sql_text
from penstock.stream.sql_loader.tokens import SqlFile

STATEMENTS = [re.sub(r"--.*", "", statement) for statement, _ in pair_examples()]


def list_tokens(statement: str) -> list[str]:
    file = SqlFile(Path("page.sql"), statement)
    return [file.slice([token]) for token in file.tokenize()]


ALL_TOKENS = sorted({token for statement in STATEMENTS for token in list_tokens(statement)})


@settings(max_examples=scale_examples(100), deadline=None)
@given(
    st.sampled_from(STATEMENTS),
    st.lists(st.tuples(st.integers(0), st.sampled_from(["remove", *ALL_TOKENS])), min_size=1, max_size=3),
)
def test_a_damaged_statement_is_refused_with_a_place(statement: str, changes: list[tuple[int, str]]) -> None:
    tokens = list_tokens(statement)
    for number, token in changes:
        position = number % len(tokens)
        tokens[position : position + 1] = [] if token == "remove" else [token]
    try:
        load_sql_text(" ".join(tokens), name_of(statement))
    except DefinitionError as error:
        places = [problem.location for problem in error.problems]
        if not all(re.search(r"\.sql:\d+", place) for place in places):
            pytest.fail(f"{error} has no place")


@pytest.mark.parametrize(
    "ending", ["UNION", "UNION ALL", "JOIN", "WITH", "GROUP BY", "EMIT", "INTO", "AS", ",", "("]
)
def test_a_statement_that_ends_too_early_is_refused(ending: str) -> None:
    text = f"CREATE STREAM readings AS SELECT COUNT(*) AS n FROM sensors {ending}"
    with pytest.raises(DefinitionError, match=r"readings\.sql:1:\d+: "):
        load_sql_text(text, "readings").to_plan("readings")
