"""Steps as a keyword, its value and its options: what YAML has in an item of `steps`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.definition.condition_text import format_condition
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import (
    ApplyStep,
    ArrowStep,
    FilterStep,
    LookupStep,
    RowFunctionStep,
    SelectStep,
    SqlStep,
    Step,
)
from penstock.stream.forms.function_names import name_function, read_version


@dataclass(frozen=True)
class StepForm:
    """A step. `value` is None where all is in the options, as for `lookup`."""

    keyword: str
    value: Any
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_function(self) -> bool:
        """Whether the value is a function as `module:name`."""
        return self.keyword in ("map", "flat_map", "apply", "arrow")


def describe_step(step: Step) -> StepForm:
    """Return a step as users write it."""
    match step:
        case FilterStep(condition):
            return StepForm("filter", format_condition(condition))
        case SelectStep(columns):
            return StepForm("select", [new if new == old else {new: old} for new, old in columns])
        case SqlStep(text):
            return StepForm("sql", text)
        case LookupStep(table, on, columns):
            return StepForm(
                "lookup", None, {"table": table, "on": list(on), "columns": column_types(columns)}
            )
        case RowFunctionStep(function, returns):
            options = {"returns": column_types(returns), **read_version(function)}
            return StepForm(step.keyword, name_function(function, step.keyword), options)
        case ApplyStep(function, returns) | ArrowStep(function, returns):
            keyword = "apply" if isinstance(step, ApplyStep) else "arrow"
            declared = {"returns": column_types(returns)} if returns else {}
            return StepForm(keyword, name_function(function, keyword), {**declared, **read_version(function)})


def column_types(columns: Iterable[Column]) -> dict[str, str]:
    """Return columns with their types."""
    return {column.name: column.type for column in columns}
