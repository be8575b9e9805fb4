"""Two definitions of one stream compared: a pure function, which decides what an upgrade takes.

What is not known to be harmless takes a replay. A part of a plan that is added later, and not mentioned here, does.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from penstock.pipelines.plan.aggregates import Output
from penstock.pipelines.plan.codec import fingerprint, part_to_json
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.sinks import FinalPanes, PaneLog, Sink
from penstock.pipelines.plan.source import Column, Source
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.upgrade.classes import Class, Difference, Upgrade

FROM_NEXT = "it holds for records from the next batch on; what windows hold already stays as it is"

KEPT_WITH: Mapping[str, str] = {
    "steps": f"{FROM_NEXT}; a column that the state has must keep its type, or the stream is parked",
    "on_time_pane": "it holds for panes from the next batch on",
    "final_pane": "it holds for windows that close from the next batch on",
    "may_finish": "it only says what is allowed",
    "topics": "what is published begins with the next batch; what a topic has stays there",
}
"""Answers of a stage that its state does not depend on."""

OF_SOURCE: Mapping[str, str] = {
    "watermark": "the watermark goes on by the new rule, and never back",
    "checks": "records are judged by the new checks from the next batch on",
    "deduplication": "repeats of records that were read before are known only as the old rule kept their ids",
}
"""The same of a source."""


def compare(before: Plan, after: Plan, from_now: Collection[str] = ()) -> Upgrade:
    """Classify every difference. `from_now` are columns that may count only what comes from now on."""
    found = [
        *_whole("name", before.name, after.name),
        *_each("input", _named(before.sources), _named(after.sources), _of_source),
        *_each(
            "stage",
            _named(before.stages),
            _named(after.stages),
            lambda old, new: _of_stage(old, new, from_now),
        ),
    ]
    if not found and fingerprint(before) != fingerprint(after):
        found = [Difference("definition", fingerprint(before)[:8], fingerprint(after)[:8], Class.REPLAY, "")]
    return Upgrade(after.name, tuple(found), frozenset(from_now))


def _of_source(before: Source, after: Source) -> Iterator[Difference]:
    for name in _names(before):
        old, new = getattr(before, name), getattr(after, name)
        if name == "columns":
            yield from _of_columns(f"{after.name}.", old, new)
        elif name in OF_SOURCE:
            yield from _differs(f"{after.name}.{name}", old, new, Class.COMPATIBLE, OF_SOURCE[name])
        else:
            yield from _whole(f"{after.name}.{name}", old, new)


def _of_columns(where: str, before: tuple[Column, ...], after: tuple[Column, ...]) -> Iterator[Difference]:
    old, new = _named(before), _named(after)
    for name in sorted({*old, *new}):
        types = [None if column is None else column.type for column in (old.get(name), new.get(name))]
        fits = None in types or types[0] == types[1]
        takes = Class.COMPATIBLE if fits else Class.REPLAY
        note = FROM_NEXT if fits else "values of another type cannot be added to those in the state"
        yield from _differs(f"{where}{name}", old.get(name), new.get(name), takes, note)


def _of_stage(before: Stage, after: Stage, from_now: Collection[str]) -> Iterator[Difference]:
    for name in _names(before):
        old, new = getattr(before, name), getattr(after, name)
        if name == "aggregates":
            yield from _of_outputs(old, new, from_now)
        elif name == "sinks":
            yield from _of_sinks(old, new)
        elif name == "lateness":
            yield from _of_lateness(old, new)
        elif name in KEPT_WITH:
            yield from _differs(name, old, new, Class.COMPATIBLE, KEPT_WITH[name])
        elif only_clock(old, new):
            note = "the function keeps what it has, and may set timers of the clock or no longer"
            yield from _differs("remember.clock", old.clock, new.clock, Class.COMPATIBLE, note)
        else:
            yield from _whole(name, old, new)


def _of_lateness(before: int, after: int) -> Iterator[Difference]:
    if after < before:
        note = "windows that are open close by the new lateness"
        yield from _differs("lateness", before, after, Class.COMPATIBLE, note)
    else:
        note = "a window that is closed would begin anew with what comes late, without what it held"
        yield from _differs("lateness", before, after, Class.REPLAY, note)


def only_clock(old: Any, new: Any) -> bool:
    """Tell whether two functions differ in nothing but that one says that it sets timers of the clock."""
    both = isinstance(old, Remembering) and isinstance(new, Remembering)
    return both and old.clock != new.clock and replace(old, clock=new.clock) == new


def _of_outputs(
    before: tuple[Output, ...], after: tuple[Output, ...], from_now: Collection[str]
) -> Iterator[Difference]:
    old, new = _named(before), _named(after)
    for name in sorted({*old, *new}):
        if name not in new:
            note = "its columns are taken out of the state"
            yield from _differs(name, old[name], None, Class.MIGRATABLE, note)
        elif name in from_now:
            note = "in windows that are open it counts only what comes from now on, as declared"
            yield from _differs(name, old.get(name), new[name], Class.MIGRATABLE, note)
        else:
            note = f"windows that are open lack it; --from-now {name} declares that they may"
            yield from _differs(name, old.get(name), new[name], Class.REPLAY, note)
    if tuple(old) != tuple(new) and {*old} == {*new}:
        note = "the columns of the state change places"
        yield Difference("order of columns", ", ".join(old), ", ".join(new), Class.MIGRATABLE, note)


def _of_sinks(before: tuple[Sink, ...], after: tuple[Sink, ...]) -> Iterator[Difference]:
    for sink in before:
        if sink not in after:
            yield from _differs("write", sink, None, Class.COMPATIBLE, "the table stays as it is")
    for sink in after:
        if sink not in before:
            grows = isinstance(sink, PaneLog | FinalPanes)
            takes = Class.COMPATIBLE if grows else Class.REPLAY
            note = (
                "it begins with the next batch"
                if grows
                else "it would lack every window that no more changes"
            )
            yield from _differs("write", None, sink, takes, note)


def _each(
    kind: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    inside: Callable[[Any, Any], Iterable[Difference]],
) -> Iterator[Difference]:
    for name in sorted({*before, *after}):
        if name in before and name in after:
            yield from inside(before[name], after[name])
        else:
            yield from _whole(f"{kind} {name}", before.get(name), after.get(name))


def _whole(what: str, before: object, after: object) -> Iterator[Difference]:
    """What the state depends on as a whole."""
    yield from _differs(what, before, after, Class.REPLAY, "what the state holds was made by the old one")


def _differs(what: str, before: object, after: object, takes: Class, note: str) -> Iterator[Difference]:
    if before != after:
        yield Difference(what, _shown(before), _shown(after), takes, note)


def _shown(part: object) -> str:
    """A part of a plan on one line."""
    if part is None:
        return "not there"
    if isinstance(part, tuple):
        return f"[{', '.join(_shown(item) for item in part)}]" if part else "none"
    if isinstance(part, Output):
        return _shown(part.of)
    stored = part_to_json(part)
    if not isinstance(stored, dict):
        return str(stored)
    inner = ", ".join(
        f"{name}={value}" for name, value in stored.items() if name != "kind" and value is not None
    )
    return f"{stored['kind']}({inner})"


def _named(parts: Iterable[Any]) -> dict[str, Any]:
    return {part.name: part for part in parts}


def _names(part: Any) -> list[str]:
    return [field.name for field in fields(part) if field.name != "name"]
