"""An invalid definition is refused before anything starts: the error names the field and the fix."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.engine.errors import DefinitionError
from penstock.stream import count, fixed, from_document, from_yaml, read

CASES = yaml.safe_load((Path(__file__).parent / "invalid_definitions.yaml").read_text(encoding="utf-8"))


def test_the_unchanged_definition_is_valid() -> None:
    assert from_document(CASES["valid"]).plan.name == "sensor_minute"


@pytest.mark.parametrize("case", CASES["invalid"], ids=lambda case: str(case["change"]))
def test_an_invalid_definition_names_the_field_and_the_fix(case: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError) as raised:
        _ = from_document(CASES["valid"] | case["change"], "somewhere.yaml").plan
    assert raised.value.field == case["field"]
    assert case["fix"] in str(raised.value)
    assert raised.value.location


def nest_triggers(depth: int) -> dict[str, Any]:
    trigger: dict[str, Any] = {"after_count": 1}
    for _ in range(depth):
        trigger = {"repeatedly": trigger}
    return {"trigger": trigger}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"window": {"fixed": "9" * 5000 + " s"}},
            "window.fixed.size: '9* is not a duration. Write a number and a unit",
        ),
        (
            {"steps": [{"filter": "temperature > " + "9" * 5000}]},
            "filter: .* a number of more than 38 digits",
        ),
        (
            {"steps": [{"filter": "not " * 5000 + "site = 'a'"}]},
            "filter: 'not .*, nested too deeply. Write a",
        ),
        ({"write": "n" * 300}, "write.table: 'n*'. Use at most 200 characters"),
        (nest_triggers(60), "trigger: 61 nested triggers. Nest at most 50 triggers"),
        (nest_triggers(5000), "somewhere.yaml: the document: nested too deep"),
    ],
    ids=["duration", "number", "condition", "name", "trigger", "document"],
)
def test_a_definition_that_is_too_long_or_too_deep_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        _ = from_document(CASES["valid"] | change, "somewhere.yaml").plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("read: sensors\nkey: device\nread: cards\n", "duplicate key 'read', at line 3"),
        ("read: sensors\nwindow:\n  fixed: 1 s\n  fixed: 2 s\n", "duplicate key 'fixed', at line 4"),
        ("read: " + "[" * 5000, "nested too deeply"),
    ],
    ids=["section", "inside", "deep"],
)
def test_duplicate_keys_and_deep_nesting_of_a_file_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "stream.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError, match=message) as raised:
        from_yaml(file)
    assert raised.value.location.startswith(str(file))


def test_a_merged_key_can_be_overridden(tmp_path: Path) -> None:
    file = tmp_path / "stream.yaml"
    lines = ["read: sensors", "demo: &shown {a: 1}", "aggregate: {n: count()}", "window: {fixed: 1 s}"]
    file.write_text("\n".join([*lines, "write: {<<: {table: m, mode: log}, table: n}"]), encoding="utf-8")
    assert from_yaml(file).plan.only_stage.sinks[0].table == "n"


@pytest.mark.parametrize("section", ["read", "aggregate", "window", "write"])
def test_a_missing_section_is_named(section: str) -> None:
    document = {name: value for name, value in CASES["valid"].items() if name != section}
    with pytest.raises(DefinitionError) as raised:
        _ = from_document(document, "somewhere.yaml").plan
    assert raised.value.field == section


@pytest.mark.parametrize(
    ("section", "set_again"),
    [
        ("key", lambda pipeline: pipeline.key("site")),
        ("aggregate", lambda pipeline: pipeline.aggregate(m=count())),
        ("window", lambda pipeline: pipeline.window(fixed("2 minutes"))),
        ("trigger", lambda pipeline: pipeline.trigger()),
        ("accumulation", lambda pipeline: pipeline.accumulation("discarding")),
        ("deduplicate", lambda pipeline: pipeline.deduplicate()),
    ],
)
def test_a_section_cannot_be_set_twice(section: str, set_again: Any) -> None:
    pipeline = read("sensors").deduplicate().key("device").aggregate(n=count()).window(fixed("1 minute"))
    with pytest.raises(DefinitionError, match="set twice"):
        set_again(pipeline.trigger().accumulation("retracting"))
