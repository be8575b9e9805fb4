"""Two definitions of one stream compared: a pure function, which decides what an upgrade takes.

What is not known to be harmless takes a replay. A part of a plan that is added later, and not mentioned here, does.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from penstock.engine.plan.aggregates import AggregateOutput
from penstock.engine.plan.codec import fingerprint, part_to_json
from penstock.engine.plan.sinks import FinalPanes, PaneLog, Sink
from penstock.engine.plan.sources import Column, PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.upgrade.upgrade_class import PlanDifference, PlanUpgrade, UpgradeClass

FROM_NEXT_BATCH_NOTE = "it holds for records from the next batch on; what windows hold already stays as it is"

COMPATIBLE_STAGE_FIELDS: Mapping[str, str] = {
    "steps": f"{FROM_NEXT_BATCH_NOTE}; a column that the state has must keep its type, or the stream fails",
    "on_time_pane": "it holds for panes from the next batch on",
    "final_pane": "it holds for windows that close from the next batch on",
    "may_finish": "it only says what is allowed",
    "topics": "what is published begins with the next batch; what a topic has stays there",
}
"""Answers of a stage that its state does not depend on."""

COMPATIBLE_SOURCE_FIELDS: Mapping[str, str] = {
    "watermark": "the watermark goes on by the new rule, and never back",
    "checks": "records are judged by the new checks from the next batch on",
    "deduplication": "repeats of records that were read before are known only as the old rule kept their ids",
}
"""The same of a source."""


def compare_plans(before: Plan, after: Plan, from_now: Collection[str] = ()) -> PlanUpgrade:
    """Classify every difference. `from_now` are columns that may count only what comes from now on."""
    differences = [
        *_require_replay_if_changed("name", before.name, after.name),
        *_compare_named_parts(
            "input", _index_by_name(before.sources), _index_by_name(after.sources), _compare_sources
        ),
        *_compare_named_parts(
            "stage",
            _index_by_name(before.stages),
            _index_by_name(after.stages),
            lambda old, new: _compare_stages(old, new, from_now),
        ),
    ]
    if not differences and fingerprint(before) != fingerprint(after):
        differences = [
            PlanDifference(
                "definition", fingerprint(before)[:8], fingerprint(after)[:8], UpgradeClass.REPLAY, ""
            )
        ]
    return PlanUpgrade(after.name, tuple(differences), frozenset(from_now))


def _compare_sources(before: PlanSource, after: PlanSource) -> Iterator[PlanDifference]:
    for name in _compared_fields(before):
        old, new = getattr(before, name), getattr(after, name)
        if name == "columns":
            yield from _compare_columns(f"{after.name}.", old, new)
        elif name in COMPATIBLE_SOURCE_FIELDS:
            yield from _report_if_changed(
                f"{after.name}.{name}", old, new, UpgradeClass.COMPATIBLE, COMPATIBLE_SOURCE_FIELDS[name]
            )
        else:
            yield from _require_replay_if_changed(f"{after.name}.{name}", old, new)


def _compare_columns(
    prefix: str, before: tuple[Column, ...], after: tuple[Column, ...]
) -> Iterator[PlanDifference]:
    old, new = _index_by_name(before), _index_by_name(after)
    for name in sorted({*old, *new}):
        types = [None if column is None else column.type for column in (old.get(name), new.get(name))]
        is_compatible = None in types or types[0] == types[1]
        upgrade_class = UpgradeClass.COMPATIBLE if is_compatible else UpgradeClass.REPLAY
        note = (
            FROM_NEXT_BATCH_NOTE
            if is_compatible
            else "values of another type cannot be added to those in the state"
        )
        yield from _report_if_changed(f"{prefix}{name}", old.get(name), new.get(name), upgrade_class, note)


def _compare_stages(before: Stage, after: Stage, from_now: Collection[str]) -> Iterator[PlanDifference]:
    for name in _compared_fields(before):
        old, new = getattr(before, name), getattr(after, name)
        if name == "aggregates":
            yield from _compare_outputs(old, new, from_now)
        elif name == "sinks":
            yield from _compare_sinks(old, new)
        elif name == "lateness":
            yield from _compare_lateness(old, new)
        elif name in COMPATIBLE_STAGE_FIELDS:
            yield from _report_if_changed(
                name, old, new, UpgradeClass.COMPATIBLE, COMPATIBLE_STAGE_FIELDS[name]
            )
        elif differs_only_in_clock(old, new):
            note = "the function keeps what it has, and may set timers of the clock or no longer"
            yield from _report_if_changed(
                "stateful.clock", old.clock, new.clock, UpgradeClass.COMPATIBLE, note
            )
        else:
            yield from _require_replay_if_changed(name, old, new)


def _compare_lateness(before: int, after: int) -> Iterator[PlanDifference]:
    if after < before:
        note = "windows that are open close by the new lateness"
        yield from _report_if_changed("lateness", before, after, UpgradeClass.COMPATIBLE, note)
    else:
        note = "a window that is closed would begin anew with what comes late, without what it held"
        yield from _report_if_changed("lateness", before, after, UpgradeClass.REPLAY, note)


def differs_only_in_clock(old: Any, new: Any) -> bool:
    """Tell whether two functions differ in nothing but that one says that it sets timers of the clock."""
    both_stateful = isinstance(old, StatefulFunction) and isinstance(new, StatefulFunction)
    return both_stateful and old.clock != new.clock and replace(old, clock=new.clock) == new


def _compare_outputs(
    before: tuple[AggregateOutput, ...], after: tuple[AggregateOutput, ...], from_now: Collection[str]
) -> Iterator[PlanDifference]:
    old, new = _index_by_name(before), _index_by_name(after)
    for name in sorted({*old, *new}):
        if name not in new:
            note = "its columns are taken out of the state"
            yield from _report_if_changed(name, old[name], None, UpgradeClass.MIGRATABLE, note)
        elif name in from_now:
            note = "in windows that are open it counts only what comes from now on, as declared"
            yield from _report_if_changed(name, old.get(name), new[name], UpgradeClass.MIGRATABLE, note)
        else:
            note = f"windows that are open lack it; --from-now {name} declares that they may"
            yield from _report_if_changed(name, old.get(name), new[name], UpgradeClass.REPLAY, note)
    if tuple(old) != tuple(new) and {*old} == {*new}:
        note = "the columns of the state change places"
        yield PlanDifference(
            "order of columns", ", ".join(old), ", ".join(new), UpgradeClass.MIGRATABLE, note
        )


def _compare_sinks(before: tuple[Sink, ...], after: tuple[Sink, ...]) -> Iterator[PlanDifference]:
    for sink in before:
        if sink not in after:
            yield from _report_if_changed(
                "write", sink, None, UpgradeClass.COMPATIBLE, "the table stays as it is"
            )
    for sink in after:
        if sink not in before:
            is_append_only = isinstance(sink, PaneLog | FinalPanes)
            upgrade_class = UpgradeClass.COMPATIBLE if is_append_only else UpgradeClass.REPLAY
            note = (
                "it begins with the next batch"
                if is_append_only
                else "it would lack every window that no more changes"
            )
            yield from _report_if_changed("write", None, sink, upgrade_class, note)


def _compare_named_parts(
    kind: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    compare_part: Callable[[Any, Any], Iterable[PlanDifference]],
) -> Iterator[PlanDifference]:
    for name in sorted({*before, *after}):
        if name in before and name in after:
            yield from compare_part(before[name], after[name])
        else:
            yield from _require_replay_if_changed(f"{kind} {name}", before.get(name), after.get(name))


def _require_replay_if_changed(subject: str, before: object, after: object) -> Iterator[PlanDifference]:
    """What the state depends on as a whole."""
    yield from _report_if_changed(
        subject, before, after, UpgradeClass.REPLAY, "what the state holds was made by the old one"
    )


def _report_if_changed(
    subject: str, before: object, after: object, upgrade_class: UpgradeClass, note: str
) -> Iterator[PlanDifference]:
    if before != after:
        yield PlanDifference(subject, _format_part(before), _format_part(after), upgrade_class, note)


def _format_part(part: object) -> str:
    """A part of a plan on one line."""
    if part is None:
        return "not there"
    if isinstance(part, tuple):
        return f"[{', '.join(_format_part(item) for item in part)}]" if part else "none"
    if isinstance(part, AggregateOutput):
        return _format_part(part.aggregate)
    plain_part = part_to_json(part)
    if not isinstance(plain_part, dict):
        return str(plain_part)
    arguments = ", ".join(
        f"{name}={value}" for name, value in plain_part.items() if name != "kind" and value is not None
    )
    return f"{plain_part['kind']}({arguments})"


def _index_by_name(parts: Iterable[Any]) -> dict[str, Any]:
    return {part.name: part for part in parts}


def _compared_fields(part: Any) -> list[str]:
    return [field.name for field in fields(part) if field.name != "name"]
