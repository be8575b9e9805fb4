"""From a plan in Terraform's JSON to a typed one.

A value that is marked sensitive anywhere in the plan is masked everywhere in it: Terraform forgets the
mark when a resource copies the value, as the output of `terraform_data` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from penstock.infra.terraform.plans import (
    MASK,
    UNKNOWN,
    Action,
    OutputChange,
    Resource,
    ResourceChange,
    ValueChange,
    read_action,
)

_SHORTEST_SECRET = 4
Leaves = dict[str, object]


def read_changes(
    documents: Iterable[Mapping[str, Any]], secrets: Collection[str]
) -> tuple[ResourceChange, ...]:
    """Make changes from `resource_changes` or `resource_drift`; no-ops are left out."""
    changes = (_resource_change(document, secrets) for document in documents)
    return tuple(change for change in changes if change.action is not Action.NOTHING)


def read_outputs(documents: Mapping[str, Mapping[str, Any]]) -> tuple[OutputChange, ...]:
    """Make output changes from `output_changes`; no-ops are left out."""
    changes = (OutputChange(name, read_action(change["actions"])) for name, change in documents.items())
    return tuple(change for change in changes if change.action is not Action.NOTHING)


def read_resources(module: Mapping[str, Any], secrets: Collection[str]) -> tuple[Resource, ...]:
    """All managed resources of a module and those below it, as they will be."""
    own = (item for item in module.get("resources", []) if item["mode"] == "managed")
    inner = (found for child in module.get("child_modules", []) for found in read_resources(child, secrets))
    return (*(_resource(item, secrets) for item in own), *inner)


def read_secrets(document: Mapping[str, Any]) -> frozenset[str]:
    """All texts that the plan marks as sensitive, in resources, outputs and variables."""
    changes = [item["change"] for item in document.get("resource_changes", [])]
    changes += [item["change"] for item in document.get("resource_drift", [])]
    changes += document.get("output_changes", {}).values()
    found = {text for change in changes for side in ("before", "after") for text in _marked(change, side)}
    return frozenset(
        text for text in {*found, *_sensitive_variables(document)} if len(text) >= _SHORTEST_SECRET
    )


def _sensitive_variables(document: Mapping[str, Any]) -> Iterator[str]:
    declared = document.get("configuration", {}).get("root_module", {}).get("variables", {})
    for name, variable in document.get("variables", {}).items():
        if declared.get(name, {}).get("sensitive"):
            yield from (str(value) for value in _leaves(variable.get("value")).values())


def _marked(change: Mapping[str, Any], side: str) -> Iterator[str]:
    marks = _leaves(change.get(f"{side}_sensitive"))
    for path, value in _leaves(change.get(side)).items():
        if any(mark is True and _is_within(path, place) for place, mark in marks.items()):
            yield str(value)


def _resource(document: Mapping[str, Any], secrets: Collection[str]) -> Resource:
    values = _without(document.get("values", {}), document.get("sensitive_values", {}), secrets)
    return Resource(document["address"], document["type"], values)


def _without(value: Any, marks: Any, secrets: Collection[str]) -> Any:
    """The value less all that is sensitive."""
    if marks is True or (isinstance(value, str) and any(secret in value for secret in secrets)):
        return None
    if isinstance(value, Mapping):
        inner = marks if isinstance(marks, Mapping) else {}
        return {name: _without(item, inner.get(name), secrets) for name, item in value.items()}
    if isinstance(value, list):
        members = marks if isinstance(marks, list) else []
        padded = [*members, *([None] * (len(value) - len(members)))]
        return [_without(item, mark, secrets) for item, mark in zip(value, padded, strict=True)]
    return value


def _resource_change(document: Mapping[str, Any], secrets: Collection[str]) -> ResourceChange:
    return ResourceChange(
        address=document["address"],
        kind=document["type"],
        action=read_action(document["change"]["actions"]),
        values=tuple(_value_changes(document["change"], secrets)),
        reason=document.get("action_reason", "").replace("_", " "),
    )


def _value_changes(change: Mapping[str, Any], secrets: Collection[str]) -> Iterator[ValueChange]:
    before = _leaves(change.get("before"))
    after = _leaves(change.get("after"))
    unknown = {path: UNKNOWN for path, mark in _leaves(change.get("after_unknown")).items() if mark is True}
    after |= unknown
    marks = {*_true(change.get("before_sensitive")), *_true(change.get("after_sensitive"))}
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            hidden = any(_is_within(path, mark) for mark in marks)
            yield ValueChange(path, *(_shown(side.get(path), hidden, secrets) for side in (before, after)))


def _shown(value: object, hidden: bool, secrets: Collection[str]) -> object:
    if value is None or value == UNKNOWN:
        return value
    return MASK if hidden or any(secret in str(value) for secret in secrets) else value


def _true(marks: Any) -> list[str]:
    return [path for path, mark in _leaves(marks).items() if mark is True]


def _is_within(path: str, place: str) -> bool:
    """Whether a path is the place or lies below it; the empty place holds all."""
    return place == "" or path == place or path.startswith((f"{place}.", f"{place}["))


def _leaves(value: Any, path: str = "") -> Leaves:
    """All values that are neither mappings nor lists, by their path; what is null is absent."""
    if isinstance(value, Mapping):
        members = [(f"{path}.{name}" if path else str(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        members = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    else:
        return {} if value is None else {path: value}
    return {place: leaf for inner, item in members for place, leaf in _leaves(item, inner).items()}
