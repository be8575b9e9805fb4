"""The four questions, each answered in sentences."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.engine.explain import phrases
from penstock.engine.plan import (
    AfterWatermark,
    Between,
    ChangelogWindows,
    Default,
    Global,
    JoinWindow,
    SlidingOrder,
    Stage,
    StatefulFunction,
    Tumbling,
    is_processing_time,
)

ACCUMULATION_ANSWERS = {
    "discarding": "Each pane holds only what came since the last one.",
    "accumulating": "Each pane holds everything so far, and stands for those before it.",
    "retracting": "A pane that changes a value first takes the old value back, as a row of its own.",
}
ON_TIME_ANSWER = "A window without news shows no on-time pane."
FINAL_PANE_ANSWERS = {
    "when_changed": "A window that closes shows what was not shown yet.",
    "always": "A window that closes shows a last pane, changed or not.",
}


@dataclass(frozen=True)
class Question:
    """One question and its answers."""

    keyword: str
    subject: str
    answers: tuple[str, ...]


def answer_questions(stage: Stage, upstream_stages: tuple[Stage, ...] = ()) -> tuple[Question, ...]:
    """Answer the four questions for a stage, which may read the panes of others."""
    names = [upstream.name for upstream in upstream_stages]
    return (
        Question("what", "what is computed", answer_what(stage, names)),
        Question("where", "where in event time", answer_where(stage)),
        Question("when", "when in processing time", answer_when(stage, names)),
        Question("how", "how refinements relate", answer_how(stage)),
    )


def answer_what(stage: Stage, upstream_names: list[str]) -> tuple[str, ...]:
    """Say what is computed."""
    elements = f"panes of {phrases.join_phrases(upstream_names)}" if upstream_names else "records"
    key = f"per {phrases.join_phrases(list(stage.key))}" if stage.key else f"over all {elements} together"
    key += f", over {elements}" if stage.key and upstream_names else ""
    if isinstance(stage.window, ChangelogWindows):
        rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.columns)
        return ("The panes that another stream published, as they are:", rows)
    if isinstance(stage.window, StatefulFunction):
        if stage.window.is_pass_through:
            rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.returns)
            return ("Each record, as a row:", rows)
        function, state = stage.window.function.name, stage.window.state.name
        rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.returns)
        vectorized_note = ", for all keys of a batch at once" if stage.window.vectorized else ""
        result = f"what {function} makes of its records and of a {state}{vectorized_note}:"
        return (f"{key[0].upper()}{key[1:]}, {result}", rows, *describe_side_outputs(stage.window))
    if stage.join is not None:
        kind, left, right = stage.join.kind, stage.join.left, stage.join.right
        rows = ", ".join(
            f"{join_column.name}: {join_column.field} of {join_column.input}"
            for join_column in stage.join.columns
        )
        return (f"{key[0].upper()}{key[1:]}, the {kind} join of {left} and {right}:", rows)
    columns = (
        f"{output.name}: {phrases.describe_aggregate(output.aggregate, panes=bool(upstream_names))}"
        for output in stage.aggregates
    )
    return (f"{key[0].upper()}{key[1:]}:", *columns)


def describe_side_outputs(window: StatefulFunction) -> Iterator[str]:
    """Yield what rows a function sends elsewhere."""
    for output in window.outputs:
        rows = ", ".join(f"{column.name} ({column.type})" for column in output.returns)
        yield f"and to {output.name}: {rows}"


def answer_where(stage: Stage) -> tuple[str, ...]:
    """Say where results belong."""
    description = phrases.describe_window(stage.window)
    return (f"{description[0].upper()}{description[1:]}.",)


def answer_when(stage: Stage, upstream_names: list[str]) -> tuple[str, ...]:
    """Say when panes appear, and how long they may change."""
    if isinstance(stage.window, ChangelogWindows):
        allowed_lateness = phrases.format_duration(stage.lateness)
        return (
            f"When they come; they correct a window for {allowed_lateness} behind what they say of the watermark.",
        )
    if isinstance(stage.window, StatefulFunction) and stage.window.is_pass_through:
        return ("With the batch that brings the record; nothing is late.",)
    if isinstance(stage.window, StatefulFunction) and stage.window.is_event_time_ordered:
        return (
            "A record is told when the watermark has passed it, a timer between the records where it lies.",
            "Records behind the watermark go to the late table.",
        )
    if isinstance(stage.window, StatefulFunction):
        return (
            "With each batch that has records of the key, and when a timer of the key is due; nothing is late.",
        )
    if isinstance(stage.window, Tumbling | SlidingOrder):
        return ("Each window shows one pane, when its policy says so; nothing is late.",)
    if isinstance(stage.window, JoinWindow):
        return (describe_join_timing(stage), describe_lateness(stage))
    firing = describe_firing(stage)
    policy_answers = [ON_TIME_ANSWER] if stage.on_time_pane == "when_changed" else []
    policy_answers += [FINAL_PANE_ANSWERS[stage.final_pane]] if stage.final_pane in FINAL_PANE_ANSWERS else []
    policy_answers += ["It may finish; what comes later goes to the late table."] if stage.may_finish else []
    lateness_answer = (
        f"It takes every correction of {phrases.join_phrases(upstream_names)}."
        if upstream_names
        else describe_lateness(stage)
    )
    return (f"{firing[0].upper()}{firing[1:]}.", lateness_answer, *policy_answers)


def describe_firing(stage: Stage) -> str:
    """Say when a window shows a pane; where it closes at its end, nothing comes after that."""
    if stage.trigger == Default() and isinstance(stage.window, Global):
        return "when the input has ended"
    match stage.trigger:
        case Default() if stage.lateness == 0:
            description = "when the watermark passes the end of the window"
        case AfterWatermark(early, late) if stage.lateness == 0 and (early or late):
            description = phrases.describe_until_end(early)
        case _:
            description = phrases.describe_trigger(stage.trigger)
    return (
        description.replace("the watermark", "the batch clock")
        if is_processing_time(stage.window)
        else description
    )


def describe_join_timing(stage: Stage) -> str:
    """Say when a row of a join without windows is shown."""
    if isinstance(stage.window, Between):
        return "A pair is shown when its second record comes, and who found nobody when nobody can come any more."
    return f"A record is shown when the watermark has passed it{phrases.format_delay(stage.lateness)}."


def describe_lateness(stage: Stage) -> str:
    """Say until when a record is still taken."""
    if isinstance(stage.window, JoinWindow):
        threshold = (
            f"more than {phrases.format_duration(stage.lateness)} behind" if stage.lateness else "behind"
        )
        return f"Records that come {threshold} the watermark go to the late table."
    if isinstance(stage.window, Global):
        return "No record is late: the window has no end."
    if is_processing_time(stage.window):
        return "No record is late; a window closes when the clock passes its end."
    if stage.lateness == 0:
        return "Records behind the watermark's passing of the end go to the late table."
    allowed_lateness = phrases.format_duration(stage.lateness)
    return (
        f"Late records correct a window for {allowed_lateness} of event time; "
        "after that they go to the late table."
    )


def answer_how(stage: Stage) -> tuple[str, ...]:
    """Say how panes of a window relate."""
    if isinstance(stage.window, ChangelogWindows):
        return ("As changes: a pane brings an element, or takes it back.",)
    if isinstance(stage.window, StatefulFunction):
        return ("A row stands by itself, and is never corrected.",)
    if isinstance(stage.window, JoinWindow):
        return ("A row stands by itself, and is never corrected.",)
    if isinstance(stage.window, Tumbling | SlidingOrder):
        return ("A window has one pane, which is never corrected.",)
    return (ACCUMULATION_ANSWERS[stage.accumulation],)
