"""A pipeline in Python and the same pipeline in YAML give one plan."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pipelines.stream import named_functions

from penstock import stream
from penstock.engine.definition.user_functions import import_by_name
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.stream import from_document, from_yaml

DEFINITIONS = yaml.safe_load(
    (Path(__file__).parent / "equivalent_definitions.yaml").read_text(encoding="utf-8")
)
NAMED_FUNCTIONS = {
    name: getattr(named_functions, name) for name in ("add_degrees", "alarm", "alarms", "Alarm", "as_seen")
}
NAMESPACE = {name: getattr(stream, name) for name in stream.__all__} | {
    "imported": import_by_name,
    **NAMED_FUNCTIONS,
}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: str(definition["yaml"]["write"]))
def test_python_and_yaml_give_one_plan(definition: dict[str, Any]) -> None:
    python_plan = eval(definition["python"], NAMESPACE).plan
    yaml_plan = from_document(definition["yaml"]).plan
    assert yaml_plan == python_plan
    assert fingerprint(yaml_plan) == fingerprint(python_plan)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: str(definition["yaml"]["write"]))
def test_every_plan_round_trips_through_json(definition: dict[str, Any]) -> None:
    plan = from_document(definition["yaml"]).plan
    assert plan_from_dict(json.loads(json.dumps(plan_to_dict(plan)))) == plan


def test_the_definitions_use_every_public_function() -> None:
    text = "".join(definition["python"] for definition in DEFINITIONS)
    unused = {name for name in stream.__all__ if f"{name}(" not in text}
    assert unused == {"Pipeline", "combine", "from_document", "from_sql", "from_yaml"}


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "invalid.yaml"
    path.write_text("read: [unclosed", encoding="utf-8")
    with pytest.raises(stream.pipeline.DefinitionError, match=r"invalid\.yaml"):
        from_yaml(path)
    path.write_text("read: sensors\nwindow: {fixd: 1 minute}", encoding="utf-8")
    with pytest.raises(stream.pipeline.DefinitionError, match=r"invalid\.yaml:2: window"):
        from_yaml(path)


def test_a_definition_does_not_import_spark() -> None:
    program = (
        "import sys; from penstock.pipelines.catalog import load_plan, pipeline_names;"
        "[load_plan(name) for name in pipeline_names()];"
        "import penstock.engine.explain, penstock.conformance.reference, penstock.conformance;"
        "print([name for name in ('pyspark', 'delta') if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_the_order_of_calls_does_not_matter() -> None:
    key_first = (
        stream.read("sensors")
        .key("device")
        .aggregate(n=stream.count())
        .window(stream.fixed("1 minute"))
        .write("t")
    )
    key_last = (
        stream.read("sensors")
        .write("t")
        .window(stream.fixed("1 minute"))
        .aggregate(n=stream.count())
        .key("device")
    )
    assert key_first.plan == key_last.plan


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({"left": "clicks"}, "join.right: missing. Name a topic"),
        (
            {"left": "clicks", "right": {"colour": "red"}},
            "join.right: there is no section 'colour'. Sections: ",
        ),
        ({"left": "clicks", "right": {"key": "id"}}, "read: missing"),
        ({"left": "clicks", "right": {"read": "cards", "key": "id"}}, "window: invalid_1 has no window"),
    ],
)
def test_an_invalid_side_of_a_join_is_refused(sides: dict[str, Any], message: str) -> None:
    document = {
        "join": {**sides, "by": "id"},
        "window": {"fixed": "1 minute"},
        "write": {"table": "t", "mode": "log"},
    }
    with pytest.raises(stream.pipeline.DefinitionError) as raised:
        from_document(document).to_plan("invalid")
    assert message in str(raised.value)
