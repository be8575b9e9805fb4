"""Where the tables of a stream are, below the warehouse."""

from penstock.pipelines.plan.sinks import CompleteTable, FinalPanes, LatestValues, PaneLog, Sink
from penstock.pipelines.plan.stage import Plan, Stage

LOOKUPS = "lookups"
"""The folder for the versions of tables that batches looked into."""


def folder_of(sink: Sink) -> str:
    """The folder for tables of a kind."""
    match sink:
        case PaneLog():
            return "panes"
        case FinalPanes():
            return "final"
        case LatestValues():
            return "latest"
        case CompleteTable():
            return "complete"


def result_of(sink: Sink) -> str:
    """Where the table of a sink is."""
    return f"{folder_of(sink)}/{sink.table}"


def results(plan: Plan) -> list[str]:
    """The tables of results of all stages."""
    return [result_of(sink) for stage in plan.stages for sink in stage.sinks]


def ledger_of(plan: Plan, stage: Stage) -> str:
    """The account of what a first stage did with the records that were read."""
    return f"ledger/{_beside(plan, stage)}"


def late_of(plan: Plan, stage: Stage) -> str:
    """The records that came too late for a first stage."""
    return f"late/{_beside(plan, stage)}"


def own_tables(plan: Plan) -> list[str]:
    """Every table that a stream alone writes, but the account of erased keys, which has no batches."""
    own = results(plan)
    own += [place(plan, stage) for stage in plan.firsts for place in (late_of, ledger_of)]
    own += [f"{LOOKUPS}/{plan.name}"] if plan.lookups else []
    own += [f"checks/{plan.name}"] if any(source.checks for source in plan.sources) else []
    return own


def quarantines(plan: Plan) -> list[str]:
    """The tables of records that are no good, of all topics that a stream reads; other streams write there too."""
    return [f"quarantine/{source.name}" for source in plan.sources]


def _beside(plan: Plan, stage: Stage) -> str:
    """The name of a first stage's own tables: the stream's, for the first of them."""
    return plan.name if stage == plan.first else f"{plan.name}.{stage.name}"
