"""User functions that cannot work are refused when the pipeline is defined."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import pyarrow as pa
import pytest

from penstock.engine.errors import DefinitionError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.stream import Pipeline, combine, count, fixed, read

RETURNS = {"device": "STRING", "fahrenheit": "DOUBLE"}


class Reading(TypedDict):
    device: str
    fahrenheit: float


class MisspeltReading(TypedDict):
    devise: str
    fahrenheit: float


class TextReading(TypedDict):
    device: str
    fahrenheit: str


def convert(row: dict[str, Any]) -> Reading:
    return {"device": row["device"], "fahrenheit": row["temperature"] * 9 / 5 + 32}


def with_two_arguments(row: dict[str, Any], factor: float) -> dict[str, Any]:
    return {**row, "fahrenheit": factor}


def with_misspelt_field(row: dict[str, Any]) -> dict[str, Any]:
    return {"device": row["device"], "fahrenheit": row["temprature"] * 9 / 5 + 32}


def with_misspelt_optional_field(row: dict[str, Any]) -> dict[str, Any]:
    return {"device": row.get("devise"), "fahrenheit": 1.0}


def with_misspelt_result(row: dict[str, Any]) -> dict[str, Any]:
    return {"device": row["device"], "farenheit": row["temperature"]}


def returns_a_number(row: dict[str, Any]) -> float:
    return float(row["temperature"])


def yields_rows(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"device": row["device"], "fahrenheit": 1.0}


async def waits(row: dict[str, Any]) -> dict[str, Any]:
    return row


def returns_misspelt(row: dict[str, Any]) -> MisspeltReading:
    return MisspeltReading(devise=row["device"], fahrenheit=1.0)


def returns_text(row: dict[str, Any]) -> TextReading:
    return TextReading(device=row["device"], fahrenheit="1.0")


def asks_for_a_key(row: dict[str, Any]) -> dict[str, Any]:
    return {"device": row["city"] if "city" in row else row["device"], "fahrenheit": 1.0}


def changes_its_row(row: dict[str, Any]) -> dict[str, Any]:
    row["fahrenheit"] = 1.0
    return {"device": row["device"], "fahrenheit": row["fahrenheit"]}


def count_after(steps: Pipeline) -> Pipeline:
    return steps.key("device").aggregate(n=count()).window(fixed("1 minute")).write("counts")


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "two arguments": (with_two_arguments, "takes (row, factor), and map passes 1 argument"),
    "unknown field": (with_misspelt_field, "there is no field 'temprature'"),
    "unknown optional field": (with_misspelt_optional_field, "Did you mean 'device'?"),
    "unknown result": (with_misspelt_result, "the result has no 'fahrenheit', but 'farenheit'"),
    "a number": (returns_a_number, "returns float"),
    "a generator": (yields_rows, "is a generator"),
    "a coroutine": (waits, "is a coroutine function"),
    "a lambda": (lambda row: {"device": row["devise"], "fahrenheit": 1.0}, "there is no field 'devise'"),
    "misspelt type of the result": (returns_misspelt, "has no 'device'"),
    "text for a number": (returns_text, "Write STRING or VARCHAR or CHAR"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_function_that_cannot_work_is_refused_with_its_line(case: str) -> None:
    function, message = REFUSED[case]
    with pytest.raises(DefinitionError) as raised:
        count_after(read("sensors").map(function, returns=RETURNS)).to_plan("counts")
    assert message in str(raised.value)
    assert "test_user_function_checks.py:" in str(raised.value)


@pytest.mark.parametrize("function", [convert, asks_for_a_key, changes_its_row, dict])
def test_a_function_that_may_work_is_accepted(function: Callable[..., Any]) -> None:
    count_after(read("sensors").map(function, returns=RETURNS)).to_plan("counts")


def test_a_generator_is_accepted_by_flat_map() -> None:
    count_after(read("sensors").flat_map(yields_rows, returns=RETURNS)).to_plan("counts")


def test_columns_of_a_sql_step_are_known_to_the_steps_after_it() -> None:
    renamed = read("sensors").sql("SELECT device, temperature AS celsius FROM input")
    with pytest.raises(DefinitionError, match="there is no field 'temperature'"):
        count_after(renamed.map(convert, returns=RETURNS)).to_plan("counts")
    with pytest.raises(DefinitionError, match=r"key: .*'device'.* Did you mean 'devices'"):
        count_after(read("sensors").sql("SELECT device AS devices FROM input")).to_plan("counts")


@pytest.mark.parametrize("keyword", ["apply", "arrow"])
def test_a_function_over_tables_takes_one_argument_and_returns_a_table(keyword: str) -> None:
    def without_arguments() -> None: ...

    def returns_nothing(table: Any) -> None: ...

    for function, message in ((without_arguments, "passes 1 argument"), (returns_nothing, "returns None")):
        with pytest.raises(DefinitionError, match=message):
            count_after(getattr(read("sensors"), keyword)(function)).to_plan("counts")


@dataclass
class Seen:
    number: int = 0


def without_context() -> KeyUpdate[Seen]:
    return KeyUpdate(None)


def returns_rows(context: KeyContext[Seen]) -> list[OutputRow]:
    return []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (without_context, "stateful: without_context .* takes \\(\\), and stateful passes 1 argument"),
        (returns_rows, "stateful: returns_rows .* returns list.* Return a KeyUpdate"),
    ],
)
def test_a_stateful_function_that_cannot_work_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        read("sensors").key("device").stateful(function, state=Seen, returns={"n": "INT"})


class AddsWithoutGroups:
    partial_type = result_type = pa.int64()
    can_subtract = False

    def add(self, values: pa.Table) -> pa.Array: ...

    def merge(self, partials: pa.Array, groups: Any, count: int) -> pa.Array: ...

    def subtract(self, partials: pa.Array, gone: pa.Array) -> pa.Array: ...

    def result(self, partials: pa.Array) -> pa.Array: ...


def test_a_combiner_with_other_arguments_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"combine\.add: add .* passes 3 arguments"):
        combine(AddsWithoutGroups(), "temperature")  # type: ignore[arg-type]
