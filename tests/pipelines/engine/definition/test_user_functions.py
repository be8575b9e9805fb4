"""User functions and combiners in a plan: references by name, and fingerprints of their code."""

import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.conformance.reference import InputRecord, evaluate_bounded
from penstock.engine.definition.user_functions import combiner_ref, function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.stream import combine, fixed, read


class Product:
    """A combiner that multiplies."""

    partial_type = pa.float64()
    result_type = pa.float64()
    can_subtract = False

    def __init__(self, times: float = 1.0) -> None:
        self.times = times

    def add(self, values: pa.Table, groups: npt.NDArray[Any], count: int) -> pa.Array:
        return self.merge(values.column(0).combine_chunks(), groups, count)

    def merge(self, partials: pa.Array, groups: npt.NDArray[Any], count: int) -> pa.Array:
        product = np.ones(count)
        np.multiply.at(product, groups, partials.fill_null(1.0).to_numpy(zero_copy_only=False))
        return pa.array(product)

    def subtract(self, partials: pa.Array, retracted: pa.Array) -> pa.Array:
        raise NotImplementedError

    def result(self, partials: pa.Array) -> pa.Array:
        return pc.multiply(partials, self.times)


LIMIT = 3


def keep_where_one(frame: Any) -> Any:
    return frame.where(1)


def keep_where_two(frame: Any) -> Any:
    return frame.where(2)


def recursive(frame: Any) -> Any:
    return recursive(frame.where({"a": {1, 2}}))


class Caller:
    """A callable object."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, frame: Any) -> Any:
        return frame.limit(self.limit)

    def method(self, frame: Any) -> Any:
        return frame.head(self.limit)


def keep_all_rows(frame: Any) -> Any:
    return frame


def test_a_function_is_resolved_by_its_name() -> None:
    pipeline = read("sensors").apply(keep_all_rows).aggregate(n=combine(Product(), "temperature"))
    plan = pipeline.window(fixed("1 minute")).write("t").plan
    stored_plan = plan_from_dict(plan_to_dict(plan))
    assert stored_plan == plan
    (step,) = stored_plan.only_stage.steps
    assert step.function.function is None
    assert step.function.name.endswith(":keep_all_rows")
    assert step.function.resolve() is keep_all_rows
    (output,) = stored_plan.only_stage.aggregates
    assert isinstance(output.aggregate.combiner.resolve(), Product)


def test_code_that_changed_since_the_plan_was_stored_is_refused() -> None:
    stored = replace(function_ref(keep_all_rows), function=None)
    assert stored.resolve() is keep_all_rows
    with pytest.raises(DefinitionError, match="has changed since"):
        replace(stored, fingerprint="code:0123456789abcdef").resolve()
    assert replace(stored, fingerprint="version:7").resolve() is keep_all_rows
    with pytest.raises(DefinitionError, match="has changed since"):
        replace(combiner_ref(Product(2.0)), combiner=None).resolve()


def test_a_lambda_is_refused_with_the_fix() -> None:
    reference = function_ref(lambda frame: frame)
    assert reference.resolve() is reference.function
    stored = type(reference)(reference.name, reference.fingerprint)
    with pytest.raises(DefinitionError, match="top of a module"):
        stored.resolve()


def test_a_fingerprint_covers_the_code_of_a_function() -> None:
    limit = 3
    other = 4
    fingerprints = [
        function_ref(function).fingerprint
        for function in (
            lambda frame: frame.where("a > 1"),
            lambda frame: frame.where("a > 2"),
            lambda frame: frame.filter("a > 1"),
            lambda frame: frame.where(limit),
            lambda frame: frame.where(other),
            lambda frame, by=1: frame.where(by),
            lambda frame, by=2: frame.where(by),
            lambda frame: [item for item in frame if item > 1],
            lambda frame: [item for item in frame if item > 2],
            partial(keep_all_rows, 1),
            partial(keep_all_rows, 2),
            Caller(1),
            Caller(2),
            Caller(1).method,
            lambda frame: frame.where(LIMIT),
            lambda frame: frame.where(len),
            lambda frame: keep_where_one(frame.alias("x")),
            lambda frame: keep_where_two(frame.alias("x")),
            recursive,
        )
    ]
    assert len(set(fingerprints)) == len(fingerprints)


def test_a_fingerprint_does_not_depend_on_the_position_in_the_file() -> None:
    first = function_ref(lambda frame: frame.where("a > 1"))

    # the same function on a later line
    second = function_ref(lambda frame: frame.where("a > 1"))
    assert first.fingerprint == second.fingerprint


def test_a_changed_constant_of_the_module_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = function_ref(lambda frame: frame.where(LIMIT)).fingerprint
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 4)
    assert function_ref(lambda frame: frame.where(LIMIT)).fingerprint != before


def test_a_version_replaces_the_code_in_the_fingerprint() -> None:
    first = function_ref(lambda frame: frame, version="1")
    second = function_ref(lambda frame: frame.cache(), version="1")
    assert first.fingerprint == second.fingerprint == "version:1"


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    program = (
        "from penstock.engine.definition.user_functions import function_ref;"
        "print(function_ref(lambda frame: frame.where({'a', 'b', 'c'}, ('x', None, 1.5))).fingerprint)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1


def test_the_settings_of_a_combiner_are_part_of_its_fingerprint() -> None:
    plans = [
        read("sensors")
        .aggregate(n=combine(Product(times), "temperature"))
        .window(fixed("1 minute"))
        .write("t")
        .plan
        for times in (1.0, 1.0, 2.0)
    ]
    assert fingerprint(plans[0]) == fingerprint(plans[1]) != fingerprint(plans[2])


def test_the_reference_runs_a_user_combiner() -> None:
    pipeline = read("sensors").key("device").aggregate(n=combine(Product(10.0), "temperature"))
    plan = pipeline.window(fixed("1 minute")).write("t").plan
    records = [
        InputRecord("sensors", 0, offset, {"device": "a", "at": offset, "temperature": value})
        for offset, value in enumerate([2.0, None, 3.5])
    ]
    (pane,) = evaluate_bounded(plan, records, clock=0).panes
    assert pane.values == (("n", 70.0),)
