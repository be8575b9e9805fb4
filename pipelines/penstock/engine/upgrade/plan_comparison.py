"""Compares two definitions of a stream, and decides what an upgrade requires. Pure functions.

A change that is not known to be harmless requires a replay. So does a part of a plan that is unknown here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from penstock.core.settings import DurationMs
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.plan.sources import Column, PlanSource, SourceOrigin, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.upgrade.part_words import describe_part
from penstock.engine.upgrade.upgrade_class import PlanDifference, PlanUpgrade, UpgradeClass

FROM_NEXT_BATCH_NOTE = "it applies to records from the next batch on; existing windows keep what they have"

OTHER_FORMAT_NOTE = (
    "records of the former format that are still unread are quarantined: upgrade when the lag is 0"
)

OTHER_ENCODING_NOTE = (
    "the records of the topic are in the former encoding, and a replay that cannot read them is refused: declare a "
    "new topic for the other encoding"
)

FUTURE_SKEW_NOTE = (
    "it applies from the next batch on; a watermark that is ahead stays, and only a replay moves it back"
)

COMPATIBLE_STAGE_FIELDS: Mapping[str, str] = {
    "steps": f"{FROM_NEXT_BATCH_NOTE}; columns of the state must keep their types, or the stream fails",
    "on_time_pane": "it applies to panes from the next batch on",
    "final_pane": "it applies to windows that close from the next batch on",
    "may_finish": "it only changes what is allowed",
    "topics": "publishing starts with the next batch; existing records of a topic stay",
}
"""Fields of a stage that its state does not depend on."""

COMPATIBLE_SOURCE_FIELDS: Mapping[str, str] = {
    "checks": "the new checks apply from the next batch on",
    "deduplication": "duplicates of earlier records are found only by the ids that the old rule retained",
}
"""Fields of a source that the state does not depend on."""


def compare_plans(before: Plan, after: Plan, from_now: Collection[str] = ()) -> PlanUpgrade:
    """Classify every difference. `from_now` are columns that may start empty in open windows."""
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
        elif name == "watermark":
            yield from _compare_watermarks(f"{after.name}.", old, new)
        elif name == "origin":
            yield from _compare_origins(after.name, old, new)
        elif name in COMPATIBLE_SOURCE_FIELDS:
            yield from _report_if_changed(
                f"{after.name}.{name}", old, new, UpgradeClass.COMPATIBLE, COMPATIBLE_SOURCE_FIELDS[name]
            )
        else:
            yield from _require_replay_if_changed(f"{after.name}.{name}", old, new)


def _compare_origins(name: str, before: SourceOrigin, after: SourceOrigin) -> Iterator[PlanDifference]:
    if (
        isinstance(before, TopicOrigin)
        and isinstance(after, TopicOrigin)
        and before.topic == after.topic
        and before.encoding != after.encoding
    ):
        yield PlanDifference(
            f"{name}.encoding", before.encoding, after.encoding, UpgradeClass.REPLAY, OTHER_ENCODING_NOTE
        )
    else:
        yield from _require_replay_if_changed(f"{name}.origin", before, after)


def _compare_watermarks(
    prefix: str, before: WatermarkStrategy, after: WatermarkStrategy
) -> Iterator[PlanDifference]:
    for rule in fields(WatermarkStrategy):
        if rule.compare:
            old, new = (_format_rule(rule.name, getattr(part, rule.name)) for part in (before, after))
            note = (
                FUTURE_SKEW_NOTE
                if rule.name == "max_future_skew"
                else "the watermark follows the new rule, and never goes back"
            )
            if old != new:
                yield PlanDifference(f"{prefix}{rule.name}", old, new, UpgradeClass.COMPATIBLE, note)


def _format_rule(name: str, value: str | int | bool | None) -> str:
    """Format a rule of a watermark as users write it."""
    if value is None:
        return "unlimited" if name == "max_future_skew" else "none"
    return str(value).lower() if isinstance(value, bool | str) else str(DurationMs(value))


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
        if _differ_in_format(old.get(name), new.get(name)):
            formats = [_describe_format(column) for column in (old[name], new[name])]
            yield PlanDifference(f"{prefix}{name}", formats[0], formats[1], upgrade_class, OTHER_FORMAT_NOTE)
        else:
            yield from _report_if_changed(
                f"{prefix}{name}", old.get(name), new.get(name), upgrade_class, note
            )


def _differ_in_format(before: Column | None, after: Column | None) -> bool:
    """Whether the values of a column are written in another way, although they are the same in the state."""
    if before is None or after is None or before.type != after.type:
        return False
    return before.field_type != after.field_type


def _describe_format(column: Column) -> str:
    """Return the type of a column as its contract declares it; a stored default is known by its Spark type only."""
    return (
        f"{column.field_type or column.declared_type or column.type}{', required' if column.required else ''}"
    )


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
            note = "the function keeps its state; only its processing-time timers change"
            yield from _report_if_changed(
                "stateful.clock", old.clock, new.clock, UpgradeClass.COMPATIBLE, note
            )
        else:
            yield from _require_replay_if_changed(name, old, new)


def _compare_lateness(before: int, after: int) -> Iterator[PlanDifference]:
    if after < before:
        note = "open windows close by the new lateness"
        yield from _report_if_changed("lateness", before, after, UpgradeClass.COMPATIBLE, note)
    else:
        note = "a late record would reopen a closed window without its earlier contents"
        yield from _report_if_changed("lateness", before, after, UpgradeClass.REPLAY, note)


def differs_only_in_clock(old: Any, new: Any) -> bool:
    """Whether two functions differ only in their use of processing-time timers."""
    both_stateful = isinstance(old, StatefulFunction) and isinstance(new, StatefulFunction)
    return both_stateful and old.clock != new.clock and replace(old, clock=new.clock) == new


def _compare_outputs(
    before: tuple[AggregateOutput, ...], after: tuple[AggregateOutput, ...], from_now: Collection[str]
) -> Iterator[PlanDifference]:
    old, new = _index_by_name(before), _index_by_name(after)
    for name in sorted({*old, *new}):
        if name not in new:
            note = "its columns are removed from the state"
            yield from _report_if_changed(name, old[name], None, UpgradeClass.MIGRATABLE, note)
        elif name in from_now:
            note = "in open windows it counts only new records, as declared"
            yield from _report_if_changed(name, old.get(name), new[name], UpgradeClass.MIGRATABLE, note)
        else:
            note = f"open windows lack it; --from-now {name} allows that"
            yield from _report_if_changed(name, old.get(name), new[name], UpgradeClass.REPLAY, note)
    if tuple(old) != tuple(new) and {*old} == {*new}:
        note = "the order of the state's columns changes"
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
            is_append_only = sink.content is not PaneContent.LATEST
            upgrade_class = UpgradeClass.COMPATIBLE if is_append_only else UpgradeClass.REPLAY
            note = (
                "it starts with the next batch"
                if is_append_only
                else "it would lack every window that no longer changes"
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
    """Report a change that the whole state depends on."""
    yield from _report_if_changed(
        subject, before, after, UpgradeClass.REPLAY, "the state was written under the old definition"
    )


def _report_if_changed(
    subject: str, before: object, after: object, upgrade_class: UpgradeClass, note: str
) -> Iterator[PlanDifference]:
    if before != after:
        yield PlanDifference(subject, describe_part(before), describe_part(after), upgrade_class, note)


def _index_by_name(parts: Iterable[Any]) -> dict[str, Any]:
    return {part.name: part for part in parts}


def _compared_fields(part: Any) -> list[str]:
    return [field.name for field in fields(part) if field.name != "name"]
