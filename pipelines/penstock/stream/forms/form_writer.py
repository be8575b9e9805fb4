"""Writes a pipeline in another form, and checks that the form gives the same plan."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import yaml

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.stream.forms.python_form import format_as_python
from penstock.stream.forms.sql_form import format_as_sql
from penstock.stream.forms.yaml_form import format_as_yaml
from penstock.stream.pipeline import Pipeline, definition_of
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.sql_loader.document import load_sql_text
from penstock.stream.yaml_loader.document import from_document

PipelineForm: TypeAlias = Literal["sql", "yaml", "python"]
FORMATS: Mapping[PipelineForm, Callable[[str, PipelineDefinition], str]] = {
    "sql": format_as_sql,
    "yaml": format_as_yaml,
    "python": format_as_python,
}


def write_pipeline(name: str, pipeline: Pipeline, form: PipelineForm) -> str:
    """Return a pipeline as the text of a file in another form.

    Args:
        name: the name of the pipeline.
        pipeline: its definition.
        form: the form.

    Raises DefinitionError if the form has no words for it, as SQL has none for stateful functions.
    """
    plan = pipeline.to_plan(name)
    definition = definition_of(pipeline)
    text = FORMATS[form](name, definition)
    try:
        is_same = read_form(name, text, form) == plan
    except DefinitionError:
        is_same = False
    if not is_same:
        fix = "Keep it in the form that it has"
        raise DefinitionError("explain", f"{name} has parts that {form} cannot write without a change", fix)
    return text


def read_form(name: str, text: str, form: PipelineForm) -> Plan:
    """Return the plan of a text that `write_pipeline` wrote."""
    if form == "sql":
        return load_sql_text(text, name).to_plan(name)
    if form == "yaml":
        return from_document(yaml.safe_load(text)).to_plan(name)
    variables: dict[str, Pipeline] = {}
    exec(compile(text, f"{name}.py", "exec"), variables)  # noqa: S102  # the text was just written here
    return variables[name].to_plan(name)
