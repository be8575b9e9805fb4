"""Conversion of plans to and from dictionaries, and their fingerprints.

Every part of a plan is a frozen dataclass of strings, numbers, tuples and other parts. It is stored as its fields
plus `kind`, the name of its class; `module:Class` for classes outside of the engine, which are imported when the
plan is read. User functions are stored by name and fingerprint, without code.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from penstock.core.imports import import_package_modules
from penstock.core.names import explain_unknown_name
from penstock.engine.definition.user_functions import import_by_name, qualified_name
from penstock.engine.errors import DefinitionError, PlanFormatError
from penstock.engine.plan import joins, sources
from penstock.engine.plan.stages import Plan

PLAN_FORMAT = "penstock-plan/1"
PLAN_PACKAGES = tuple(
    f"penstock.engine.{package}"
    for package in ("definition", "plan", "windows", "triggers", "aggregates", "sinks")
)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON-compatible dictionary."""
    return {"format": PLAN_FORMAT, "plan": part_to_json(plan)}


def plan_from_dict(stored: Mapping[str, Any]) -> Plan:
    """Return the plan that `plan_to_dict` stored. User functions are imported by name when they are needed."""
    stored_format = stored.get("format")
    if stored_format != PLAN_FORMAT:
        raise PlanFormatError(
            f"The stored plan has format {stored_format!r}; this version reads {PLAN_FORMAT!r}. Define it again"
        )
    plan = part_from_json(stored.get("plan"))
    if not isinstance(plan, Plan):
        raise PlanFormatError(f"The stored plan holds {type(plan).__name__}, not a plan. Define it again")
    return plan


def fingerprint(part: object) -> str:
    """Return a stable hash of a plan or a part of it. Equal parts have equal fingerprints."""
    canonical_json = json.dumps(part_to_json(part), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{PLAN_FORMAT}\n{canonical_json}".encode()).hexdigest()


def contract_version(plan_source: sources.PlanSource) -> str:
    """Return a short hash of the rules that validate records: the fields, event time and quarantine checks."""
    quarantine_checks = tuple(check for check in plan_source.checks if check.action == "quarantine")
    rules: tuple[object, ...] = (plan_source.columns, plan_source.event_time, quarantine_checks)
    if plan_source.unknown_fields != "ignore":
        rules = (*rules, plan_source.unknown_fields)
    if isinstance(plan_source.origin, sources.TopicOrigin) and plan_source.origin.deletes is not None:
        rules = (*rules, plan_source.origin.deletes, plan_source.origin.envelope)
    return fingerprint(rules)[:12]


def part_to_json(part: object) -> Any:
    """Convert a part of a plan to JSON-compatible values."""
    if is_dataclass(part) and not isinstance(part, type):
        field_values = {
            field.name: part_to_json(getattr(part, field.name))
            for field in fields(part)
            if field.compare
            and not (field.metadata.get("added") and getattr(part, field.name) == field.default)
        }
        return {"kind": name_plan_class(type(part)), **field_values}
    if isinstance(part, tuple):
        return [part_to_json(item) for item in part]
    return part


def part_from_json(stored: Any) -> Any:
    """Convert the output of `part_to_json` back to a part of a plan."""
    if isinstance(stored, list):
        return tuple(part_from_json(item) for item in stored)
    if not isinstance(stored, Mapping):
        return stored
    plan_class = find_plan_class(stored)
    is_join = plan_class is joins.Join
    values = {name: part_from_json(value) for name, value in stored.items() if is_join or name != "kind"}
    try:
        return plan_class(**values)
    except (TypeError, DefinitionError) as problem:
        raise PlanFormatError(
            f"The stored {stored['kind']} cannot be read: {problem}. Define it again"
        ) from problem


@cache
def list_plan_classes() -> Mapping[str, type[Any]]:
    """Return the parts of plans that the engine defines, by name."""
    return {
        name: part_class
        for package in PLAN_PACKAGES
        for module in import_package_modules(package)
        for name, part_class in vars(module).items()
        if isinstance(part_class, type)
        and is_dataclass(part_class)
        and part_class.__module__ == module.__name__
    }


def name_plan_class(part_class: type[Any]) -> str:
    """Return the name under which parts of a class are stored."""
    name = part_class.__name__
    return name if list_plan_classes().get(name) is part_class else qualified_name(part_class)


def find_plan_class(stored: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the class of a stored part.

    `Join` has a field named `kind` itself; its stored `kind` is the kind of the join.
    """
    kind_name = str(stored.get("kind"))
    if ":" in kind_name:
        return _import_plan_class(kind_name)
    plan_class = joins.Join if kind_name in joins.JOIN_KINDS else list_plan_classes().get(kind_name)
    if plan_class is None:
        problem = explain_unknown_name("kind", kind_name, list_plan_classes())
        raise PlanFormatError(f"The stored plan has a part of kind {kind_name!r}: {problem}")
    return plan_class


def _import_plan_class(kind_name: str) -> Callable[..., Any]:
    try:
        plan_class = import_by_name(kind_name, "kind")
    except DefinitionError as problem:
        raise PlanFormatError(
            f"The stored plan has a part of kind {kind_name}, which cannot be imported: {problem.problem}. "
            "Install its module, or define the stream again"
        ) from problem
    if not isinstance(plan_class, type) or not is_dataclass(plan_class):
        raise PlanFormatError(
            f"The stored plan has a part of kind {kind_name}, which is not a part of a plan"
        )
    return plan_class
