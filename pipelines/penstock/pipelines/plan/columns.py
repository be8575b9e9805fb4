"""Which columns there are, where this is known without running anything: what a stage reads, and what it shows."""

from collections.abc import Iterable, Mapping

from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.source import Source
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.steps import Types, columns_after

BOUNDS = ("window_start", "window_end")


def columns_read(
    stage: Stage, feeding: Iterable[Stage], sources: Iterable[Source]
) -> Mapping[str, Types | None]:
    """Return the columns of each input of a stage after all steps, or None where a step does not tell."""
    known: dict[str, Types] = {each.name: dict.fromkeys(columns_shown(each)) for each in feeding}
    known |= {source.name: {column.name: column.type for column in source.columns} for source in sources}
    return {
        name: columns_after(stage.steps, columns_after(stage.steps_of(name), known[name]))
        for name in stage.inputs
    }


def columns_shown(stage: Stage) -> tuple[str, ...]:
    """Return what a stage that reads another finds in its panes."""
    return (*stage.key, *values_of(stage), *BOUNDS)


def values_of(stage: Stage) -> tuple[str, ...]:
    """Return the columns that a stage computes."""
    if isinstance(stage.window, Remembering):
        return tuple(column.name for column in stage.window.returns)
    if isinstance(stage.window, Relayed):
        return tuple(column.name for column in stage.window.columns)
    if stage.join is not None:
        return tuple(column.name for column in stage.join.columns)
    return tuple(output.name for output in stage.aggregates)
