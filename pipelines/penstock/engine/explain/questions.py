"""The four questions of a stage (what, where, when, how), each answered in sentences."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.engine.definition.phrases import format_duration, join_phrases
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction

ACCUMULATION_ANSWERS = {
    "discarding": "Each pane holds only what arrived since the previous pane (discarding).",
    "accumulating": "Each pane holds the whole result so far and replaces the previous pane (accumulating).",
    "retracting": (
        "Each pane holds the whole result so far; "
        "a row that retracts the old value precedes a changed one (retracting)."
    ),
}
ON_TIME_ANSWER = "A window without new records emits no on-time pane."
FINAL_PANE_ANSWERS = {
    "when_changed": "A window that closes emits a final pane if something changed since the last pane.",
    "always": "A window that closes always emits a final pane, even if nothing changed.",
}


@dataclass(frozen=True)
class Question:
    """A question about a stage and its answers."""

    keyword: str
    subject: str
    answers: tuple[str, ...]


def answer_questions(stage: Stage, upstream_stages: tuple[Stage, ...] = ()) -> tuple[Question, ...]:
    """Answer the four questions for a stage, which may read the panes of upstream stages."""
    names = [upstream.name for upstream in upstream_stages]
    return (
        Question("what", "what is computed", answer_what(stage, names)),
        Question("where", "where in event time", answer_where(stage)),
        Question("when", "when in processing time", answer_when(stage, names)),
        Question("how", "how the panes of a window relate", answer_how(stage)),
    )


def answer_what(stage: Stage, upstream_names: list[str]) -> tuple[str, ...]:
    """Describe what is computed."""
    elements = f"panes of {join_phrases(upstream_names)}" if upstream_names else "records"
    key = f"per {join_phrases(list(stage.key))}" if stage.key else f"over all {elements} together"
    key += f", over {elements}" if stage.key and upstream_names else ""
    if isinstance(stage.window, ChangelogWindows):
        rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.columns)
        return ("The panes that another stream publishes, unchanged:", rows)
    if isinstance(stage.window, StatefulFunction):
        if stage.window.is_pass_through:
            rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.returns)
            return ("Each record as a row:", rows)
        function, state = stage.window.function.name, stage.window.state.name
        rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.returns)
        vectorized_note = ", called once a batch for all keys" if stage.window.vectorized else ""
        result = f"the rows of the stateful function {function} (state: {state}{vectorized_note}):"
        return (f"{key[0].upper()}{key[1:]}, {result}", rows, *describe_side_outputs(stage.window))
    if stage.join is not None:
        kind, left, right = stage.join.kind, stage.join.left, stage.join.right
        rows = ", ".join(
            f"{join_column.name}: {join_column.field} of {join_column.input}"
            for join_column in stage.join.columns
        )
        return (f"{key[0].upper()}{key[1:]}, the {kind} join of {left} and {right}:", rows)
    columns = (
        f"{output.name}: {output.aggregate.describe(panes=bool(upstream_names))}"
        for output in stage.aggregates
    )
    return (f"{key[0].upper()}{key[1:]}:", *columns)


def describe_side_outputs(window: StatefulFunction) -> Iterator[str]:
    """Yield the columns of each side output."""
    for output in window.outputs:
        rows = ", ".join(f"{column.name} ({column.type})" for column in output.returns)
        yield f"side output {output.name}: {rows}"


def answer_where(stage: Stage) -> tuple[str, ...]:
    """Describe the windows."""
    description = stage.window.describe()
    return (f"{description[0].upper()}{description[1:]}.",)


def answer_when(stage: Stage, upstream_names: list[str]) -> tuple[str, ...]:
    """Describe when panes appear, and how long they may change."""
    timing = stage.window.describe_timing(stage.lateness)
    if timing is not None:
        return timing
    firing = describe_firing(stage)
    policy_answers = [ON_TIME_ANSWER] if stage.on_time_pane == "when_changed" else []
    policy_answers += [FINAL_PANE_ANSWERS[stage.final_pane]] if stage.final_pane in FINAL_PANE_ANSWERS else []
    policy_answers += (
        ["The trigger may finish; later records go to the late table."] if stage.may_finish else []
    )
    lateness_answer = (
        f"Every correction of {join_phrases(upstream_names)} is applied."
        if upstream_names
        else describe_lateness(stage)
    )
    return (f"{firing[0].upper()}{firing[1:]}.", lateness_answer, *policy_answers)


def describe_firing(stage: Stage) -> str:
    """Describe when a window emits a pane. A window without allowed lateness emits nothing after its end."""
    if stage.has_default_trigger and stage.window.never_ends:
        return "when the input ends"
    trigger = stage.trigger
    description = trigger.describe() if stage.lateness else trigger.describe_until_end()
    return (
        description.replace("the watermark", "the batch clock")
        if stage.window.uses_processing_time
        else description
    )


def describe_lateness(stage: Stage) -> str:
    """Describe when a record is late."""
    if stage.window.never_ends:
        return "No record is late: the window has no end."
    if stage.window.uses_processing_time:
        return "No record is late: a window closes when the batch clock passes its end."
    if stage.lateness == 0:
        return "Records that arrive after the window has closed go to the late table."
    allowed_lateness = format_duration(stage.lateness)
    return (
        f"Late records correct a window until the watermark is {allowed_lateness} past its end; "
        "after that they go to the late table."
    )


def answer_how(stage: Stage) -> tuple[str, ...]:
    """Describe how the panes of a window relate."""
    return (stage.window.pane_relation or ACCUMULATION_ANSWERS[stage.accumulation],)
