"""Plans to and from plain dicts, and their fingerprints.

Every part of a plan is a frozen dataclass of strings, numbers, tuples and other parts; it is written as its
fields with a `kind`, the class's name. One's own functions are written by name and fingerprint, without code.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from penstock.pipelines.errors import DefinitionError, PlanFormatError
from penstock.pipelines.plan import (
    aggregates,
    custom,
    joins,
    pairing,
    policies,
    predicates,
    relaying,
    remembering,
    sinks,
    source,
    stage,
    steps,
    triggers,
    windows,
)
from penstock.pipelines.plan.stage import Plan

FORMAT = "penstock-plan/1"
MODULES = (
    aggregates,
    custom,
    joins,
    pairing,
    policies,
    predicates,
    relaying,
    remembering,
    sinks,
    source,
    stage,
    steps,
    triggers,
    windows,
)
KINDS: dict[str, type[Any]] = {
    name: kind
    for module in MODULES
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
}


def to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as a dict that `json` writes."""
    return {"format": FORMAT, "plan": part_to_json(plan)}


def from_dict(stored: Mapping[str, Any]) -> Plan:
    """Return the plan that `to_dict` wrote; one's own functions are found by name when they are needed."""
    found = stored.get("format")
    if found != FORMAT:
        raise PlanFormatError(
            f"The stored plan has format {found!r}; this version reads {FORMAT!r}. Define it again"
        )
    plan = part_from_json(stored.get("plan"))
    if not isinstance(plan, Plan):
        raise PlanFormatError(f"The stored plan holds {type(plan).__name__}, not a plan. Define it again")
    return plan


def fingerprint(part: object) -> str:
    """Return a stable hash of a plan or of any part of one: equal parts have equal fingerprints."""
    written = json.dumps(part_to_json(part), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{FORMAT}\n{written}".encode()).hexdigest()


def contract_version(judging: source.Source) -> str:
    """Return a short word for what records are judged by: the same for the same fields, time and checks."""
    refusing = tuple(check for check in judging.checks if check.action == "quarantine")
    return fingerprint((judging.columns, judging.event_time, refusing))[:12]


def part_to_json(part: object) -> Any:
    """Write a part of a plan as plain values."""
    if is_dataclass(part) and not isinstance(part, type):
        shown = {
            field.name: part_to_json(getattr(part, field.name))
            for field in fields(part)
            if field.compare
            and not (field.metadata.get("added") and getattr(part, field.name) == field.default)
        }
        return {"kind": type(part).__name__, **shown}
    if isinstance(part, tuple):
        return [part_to_json(item) for item in part]
    return part


def part_from_json(stored: Any) -> Any:
    """Read back what `part_to_json` wrote."""
    if isinstance(stored, list):
        return tuple(part_from_json(item) for item in stored)
    if not isinstance(stored, Mapping):
        return stored
    make = known_kind(stored)
    own = make is joins.Join
    values = {name: part_from_json(value) for name, value in stored.items() if own or name != "kind"}
    try:
        return make(**values)
    except (TypeError, DefinitionError) as problem:
        raise PlanFormatError(
            f"The stored {stored['kind']} cannot be read: {problem}. Define it again"
        ) from problem


def known_kind(stored: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the class of a stored part.

    A join's own field of that name stands where its class would: fingerprints of running streams are made of it.
    """
    said = str(stored.get("kind"))
    kind = joins.Join if said in joins.KINDS else KINDS.get(said)
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise PlanFormatError(
            f"The stored plan has a part of kind {stored.get('kind')!r}; known are: {known}"
        )
    return kind
