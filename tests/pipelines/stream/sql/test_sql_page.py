"""The examples of the page about SQL give the plans of their twins in YAML."""

import re
from pathlib import Path

import pytest

from penstock import stream
from penstock.engine.plan.codec import fingerprint
from penstock.stream import from_sql, from_yaml

PAGE = Path(stream.__file__).parents[2] / "docs/sql.md"
BLOCKS = re.findall(r"```(sql|yaml)\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)


def pair_examples() -> list[tuple[str, str]]:
    """Each statement with the YAML that follows it."""
    pairs: list[tuple[str, str]] = []
    statements: list[str] = []
    for language, text in BLOCKS:
        if language == "sql":
            statements.append(text)
        else:
            pairs += [(statement, text) for statement in statements]
            statements = []
    assert not statements
    return pairs


def name_of(statement: str) -> str:
    return re.findall(r"CREATE STREAM (\w+)", statement)[0]


@pytest.mark.parametrize(
    ("statement", "document"), pair_examples(), ids=lambda text: text.split("\n")[0][:40]
)
def test_an_example_gives_the_plan_of_its_twin(statement: str, document: str, tmp_path: Path) -> None:
    name = name_of(statement)
    file = tmp_path / f"{name}.sql"
    file.write_text(statement, "utf-8")
    sql_plan = from_sql(file).to_plan(name)
    twin = tmp_path / f"{name}.yaml"
    twin.write_text(document, "utf-8")
    yaml_plan = from_yaml(twin).to_plan(name)
    assert sql_plan == yaml_plan
    assert fingerprint(sql_plan) == fingerprint(yaml_plan)


def test_the_page_has_every_clause() -> None:
    assert {name_of(statement) for statement, _ in pair_examples()} == {
        "events",
        "hot_sites",
        "large_payments",
        "readings",
        "seen",
        "sensor_minute",
    }
