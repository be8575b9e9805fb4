"""From a plan in Terraform's JSON to a typed one.

A value that is marked sensitive anywhere in the plan is masked everywhere in it: Terraform forgets the
mark when a resource copies the value, as the output of `terraform_data` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from penstock.infra.terraform.plans import (
    SENSITIVE_MASK,
    UNKNOWN_MASK,
    AttributeChange,
    OutputChange,
    PlanAction,
    PlannedResource,
    ResourceChange,
    parse_action,
)

_MIN_SECRET_LENGTH = 4
LeafValues = dict[str, object]


def parse_resource_changes(
    documents: Iterable[Mapping[str, Any]], secrets: Collection[str]
) -> tuple[ResourceChange, ...]:
    """Make changes from `resource_changes` or `resource_drift`; no-ops are left out."""
    changes = (_parse_resource_change(document, secrets) for document in documents)
    return tuple(change for change in changes if change.action is not PlanAction.NO_OP)


def parse_output_changes(documents: Mapping[str, Mapping[str, Any]]) -> tuple[OutputChange, ...]:
    """Make output changes from `output_changes`; no-ops are left out."""
    changes = (OutputChange(name, parse_action(change["actions"])) for name, change in documents.items())
    return tuple(change for change in changes if change.action is not PlanAction.NO_OP)


def parse_resources(module: Mapping[str, Any], secrets: Collection[str]) -> tuple[PlannedResource, ...]:
    """Return all managed resources of a module and its child modules, as planned."""
    own_resources = (item for item in module.get("resources", []) if item["mode"] == "managed")
    child_resources = (
        resource for child in module.get("child_modules", []) for resource in parse_resources(child, secrets)
    )
    return (*(_parse_resource(item, secrets) for item in own_resources), *child_resources)


def find_sensitive_values(document: Mapping[str, Any]) -> frozenset[str]:
    """Return all texts that the plan marks as sensitive, in resources, outputs and variables."""
    changes = [item["change"] for item in document.get("resource_changes", [])]
    changes += [item["change"] for item in document.get("resource_drift", [])]
    changes += document.get("output_changes", {}).values()
    sensitive = {
        text for change in changes for side in ("before", "after") for text in _marked_values(change, side)
    }
    return frozenset(
        text
        for text in {*sensitive, *_sensitive_variable_values(document)}
        if len(text) >= _MIN_SECRET_LENGTH
    )


def _sensitive_variable_values(document: Mapping[str, Any]) -> Iterator[str]:
    declared = document.get("configuration", {}).get("root_module", {}).get("variables", {})
    for name, variable in document.get("variables", {}).items():
        if declared.get(name, {}).get("sensitive"):
            yield from (str(value) for value in _flatten_leaves(variable.get("value")).values())


def _marked_values(change: Mapping[str, Any], side: str) -> Iterator[str]:
    marks = _flatten_leaves(change.get(f"{side}_sensitive"))
    for path, value in _flatten_leaves(change.get(side)).items():
        if any(mark is True and _is_within(path, marked_path) for marked_path, mark in marks.items()):
            yield str(value)


def _parse_resource(document: Mapping[str, Any], secrets: Collection[str]) -> PlannedResource:
    values = _remove_sensitive(document.get("values", {}), document.get("sensitive_values", {}), secrets)
    return PlannedResource(document["address"], document["type"], values)


def _remove_sensitive(value: Any, marks: Any, secrets: Collection[str]) -> Any:
    """Return the value with sensitive parts masked."""
    if marks is True or (isinstance(value, str) and any(secret in value for secret in secrets)):
        return None
    if isinstance(value, Mapping):
        member_marks = marks if isinstance(marks, Mapping) else {}
        return {
            name: _remove_sensitive(item, member_marks.get(name), secrets) for name, item in value.items()
        }
    if isinstance(value, list):
        members = marks if isinstance(marks, list) else []
        padded = [*members, *([None] * (len(value) - len(members)))]
        return [_remove_sensitive(item, mark, secrets) for item, mark in zip(value, padded, strict=True)]
    return value


def _parse_resource_change(document: Mapping[str, Any], secrets: Collection[str]) -> ResourceChange:
    return ResourceChange(
        address=document["address"],
        kind=document["type"],
        action=parse_action(document["change"]["actions"]),
        values=tuple(_parse_attribute_changes(document["change"], secrets)),
        reason=document.get("action_reason", "").replace("_", " "),
    )


def _parse_attribute_changes(
    change: Mapping[str, Any], secrets: Collection[str]
) -> Iterator[AttributeChange]:
    before = _flatten_leaves(change.get("before"))
    after = _flatten_leaves(change.get("after"))
    unknown = {
        path: UNKNOWN_MASK
        for path, mark in _flatten_leaves(change.get("after_unknown")).items()
        if mark is True
    }
    after |= unknown
    marks = {*_marked_paths(change.get("before_sensitive")), *_marked_paths(change.get("after_sensitive"))}
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            is_sensitive = any(_is_within(path, mark) for mark in marks)
            yield AttributeChange(
                path, *(_mask_value(side.get(path), is_sensitive, secrets) for side in (before, after))
            )


def _mask_value(value: object, is_sensitive: bool, secrets: Collection[str]) -> object:
    if value is None or value == UNKNOWN_MASK:
        return value
    return SENSITIVE_MASK if is_sensitive or any(secret in str(value) for secret in secrets) else value


def _marked_paths(marks: Any) -> list[str]:
    return [path for path, mark in _flatten_leaves(marks).items() if mark is True]


def _is_within(path: str, ancestor: str) -> bool:
    """Return whether a path equals the ancestor or lies below it; an empty ancestor contains all paths."""
    return ancestor == "" or path == ancestor or path.startswith((f"{ancestor}.", f"{ancestor}["))


def _flatten_leaves(value: Any, path: str = "") -> LeafValues:
    """Return all leaf values by path, without nulls."""
    if isinstance(value, Mapping):
        members = [(f"{path}.{name}" if path else str(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        members = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    else:
        return {} if value is None else {path: value}
    return {
        leaf_path: leaf for inner, item in members for leaf_path, leaf in _flatten_leaves(item, inner).items()
    }
