"""Columns that a function from table to table declares: later steps are checked by them, and its result as well."""

from typing import Annotated, Any

import pyarrow as pa
import pytest

from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.explain import explain
from penstock.engine.plan.declared_columns import check_declared_columns
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import ArrowStep
from penstock.stream import count, fixed, read
from penstock.stream.pipeline import Pipeline

COLUMNS = {"device": "STRING", "at": "BIGINT", "celsius": "DOUBLE"}


def rename(table: Any) -> Any:
    return table


def rename_annotated(table: pa.Table) -> Annotated[pa.Table, COLUMNS]:
    return table


def finish(pipeline: Pipeline, key: str = "device") -> Any:
    return (
        pipeline.key(key).aggregate(n=count()).window(fixed("1 minute")).write("declared").to_plan("declared")
    )


@pytest.mark.parametrize("step", ["apply", "arrow"])
def test_steps_after_a_declared_result_are_checked_before_the_start(step: str) -> None:
    for declared in (
        getattr(read("sensors"), step)(rename, returns=COLUMNS),
        getattr(read("sensors"), step)(rename_annotated),
    ):
        finish(declared.filter("celsius > 20"))
        with pytest.raises(DefinitionError, match=r"there is no column 'celcius'. Did you mean 'celsius'\?"):
            finish(declared.filter("celcius > 20"))
        with pytest.raises(DefinitionError, match=r"there is no column 'celcius' \(line 1, column 8"):
            finish(declared.sql("SELECT celcius, device, at FROM input"))
        with pytest.raises(DefinitionError, match=r"sensors has no field 'devise'. Did you mean 'device'\?"):
            finish(declared, "devise")


def test_explain_says_when_the_columns_of_a_result_are_unknown() -> None:
    unknown = str(explain(finish(read("sensors").arrow(rename))))
    assert (
        "rename over Arrow; its columns are unknown until the stream starts, declare them with returns"
        in unknown
    )
    declared = str(explain(finish(read("sensors").arrow(rename, returns=COLUMNS))))
    assert "rename over Arrow, which returns device, at and celsius" in declared


def test_a_step_without_declared_columns_is_stored_as_before() -> None:
    assert finish(read("sensors").arrow(rename)).stages[0].steps == (ArrowStep(function_ref(rename)),)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["device", "at", "celsius", "_position"], None),
        (["device", "at", "celcius"], r"returned no column 'celsius'. Did you mean 'celcius'\?"),
        (["device", "at", "celsius", "site"], "returned 'site', which is not declared. Declare each column"),
    ],
)
def test_a_result_with_other_columns_than_declared_is_refused(names: list[str], message: str | None) -> None:
    returns = tuple(Column(name, kind) for name, kind in COLUMNS.items())
    if message is None:
        check_declared_columns("arrow", function_ref(rename), returns, names)
        return
    with pytest.raises(DefinitionError, match=message):
        check_declared_columns("arrow", function_ref(rename), returns, names)


def test_a_schema_as_one_text_is_refused_in_plain_words() -> None:
    with pytest.raises(
        DefinitionError, match=r"map.returns: 'city STRING' is one text. Write names and types"
    ):
        read("sensors").map(rename, "city STRING")  # type: ignore[arg-type]
