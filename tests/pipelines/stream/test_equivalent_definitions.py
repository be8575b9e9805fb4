"""Python and YAML are two ways to write one plan."""

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
from penstock.engine.plan import fingerprint, plan_from_dict, plan_to_dict
from penstock.stream import from_document, from_yaml

FORMS = yaml.safe_load((Path(__file__).parent / "equivalent_definitions.yaml").read_text(encoding="utf-8"))
OURS = {
    name: getattr(named_functions, name) for name in ("add_degrees", "alarm", "alarms", "Alarm", "as_seen")
}
WORDS = {name: getattr(stream, name) for name in stream.__all__} | {"imported": import_by_name, **OURS}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form["yaml"]["write"]))
def test_python_and_yaml_give_one_plan(form: dict[str, Any]) -> None:
    written = eval(form["python"], WORDS).plan
    read = from_document(form["yaml"]).plan
    assert read == written
    assert fingerprint(read) == fingerprint(written)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form["yaml"]["write"]))
def test_a_plan_of_every_form_is_read_back_as_it_was_stored(form: dict[str, Any]) -> None:
    plan = from_document(form["yaml"]).plan
    assert plan_from_dict(json.loads(json.dumps(plan_to_dict(plan)))) == plan


def test_every_word_of_the_python_form_is_tried_in_the_yaml_form() -> None:
    text = "".join(form["python"] for form in FORMS)
    untried = {name for name in stream.__all__ if f"{name}(" not in text}
    assert untried == {"Pipeline", "combine", "from_document", "from_yaml"}


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("read: [unclosed", encoding="utf-8")
    with pytest.raises(stream.pipeline.DefinitionError, match=r"wrong\.yaml"):
        from_yaml(path)
    path.write_text("read: sensors\nwindow: {fixd: 1 minute}", encoding="utf-8")
    with pytest.raises(stream.pipeline.DefinitionError, match=r"wrong\.yaml: window"):
        from_yaml(path)


def test_a_definition_does_not_import_spark() -> None:
    program = (
        "import sys; from penstock.pipelines.catalog import load_plan, pipeline_names;"
        "[load_plan(name) for name in pipeline_names()];"
        "import penstock.engine.explain, penstock.conformance.reference, penstock.conformance;"
        "print([name for name in ('pyspark', 'delta') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_answers_may_come_in_any_order() -> None:
    one = (
        stream.read("sensors")
        .key("device")
        .aggregate(n=stream.count())
        .window(stream.fixed("1 minute"))
        .write("t")
    )
    two = (
        stream.read("sensors")
        .write("t")
        .window(stream.fixed("1 minute"))
        .aggregate(n=stream.count())
        .key("device")
    )
    assert one.plan == two.plan


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        ({"left": "clicks"}, "join.right: missing. Name a topic"),
        (
            {"left": "clicks", "right": {"colour": "red"}},
            "join.right: unknown name 'colour'. Known names: read, union",
        ),
        ({"left": "clicks", "right": {"key": "id"}}, "read: missing"),
        ({"left": "clicks", "right": {"read": "cards", "key": "id"}}, "window: missing in wrong_1"),
    ],
)
def test_a_side_of_a_join_is_an_input_or_a_whole_stage(sides: dict[str, Any], says: str) -> None:
    document = {
        "join": {**sides, "by": "id"},
        "window": {"fixed": "1 minute"},
        "write": {"table": "t", "mode": "log"},
    }
    with pytest.raises(stream.pipeline.DefinitionError) as refused:
        from_document(document).to_plan("wrong")
    assert says in str(refused.value)
