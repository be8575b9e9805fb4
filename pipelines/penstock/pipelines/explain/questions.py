"""The four questions, each answered in sentences."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.pipelines.explain import words
from penstock.pipelines.plan import (
    AfterWatermark,
    Between,
    Default,
    Global,
    PairWindow,
    Relayed,
    Remembering,
    SlidingOrder,
    Stage,
    Tumbling,
    by_processing_time,
)

HOW = {
    "discarding": "Each pane holds only what came since the last one.",
    "accumulating": "Each pane holds everything so far, and stands for those before it.",
    "retracting": "A pane that changes a value first takes the old value back, as a row of its own.",
}
ON_TIME = "A window without news shows no on-time pane."
FINAL = {
    "when_changed": "A window that closes shows what was not shown yet.",
    "always": "A window that closes shows a last pane, changed or not.",
}


@dataclass(frozen=True)
class Question:
    """One question and its answers."""

    word: str
    about: str
    answers: tuple[str, ...]


def questions(stage: Stage, feeding: tuple[Stage, ...] = ()) -> tuple[Question, ...]:
    """Answer the four questions for a stage, which may read the panes of others."""
    names = [each.name for each in feeding]
    return (
        Question("what", "what is computed", what(stage, names)),
        Question("where", "where in event time", where(stage)),
        Question("when", "when in processing time", when(stage, names)),
        Question("how", "how refinements relate", how(stage)),
    )


def what(stage: Stage, feeding: list[str]) -> tuple[str, ...]:
    """Say what is computed."""
    read = f"panes of {words.joined(feeding)}" if feeding else "records"
    key = f"per {words.joined(list(stage.key))}" if stage.key else f"over all {read} together"
    key += f", over {read}" if stage.key and feeding else ""
    if isinstance(stage.window, Relayed):
        rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.columns)
        return ("The panes that another stream published, as they are:", rows)
    if isinstance(stage.window, Remembering):
        if stage.window.passes:
            rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.returns)
            return ("Each record, as a row:", rows)
        function, state = stage.window.function.name, stage.window.state.name
        rows = ", ".join(f"{column.name} ({column.type})" for column in stage.window.returns)
        at_once = ", for all keys of a batch at once" if stage.window.vectorised else ""
        made = f"what {function} makes of its records and of a {state}{at_once}:"
        return (f"{key[0].upper()}{key[1:]}, {made}", rows, *outputs(stage.window))
    if stage.join is not None:
        kind, left, right = stage.join.kind, stage.join.left, stage.join.right
        rows = ", ".join(f"{each.name}: {each.field} of {each.input}" for each in stage.join.columns)
        return (f"{key[0].upper()}{key[1:]}, the {kind} join of {left} and {right}:", rows)
    columns = (
        f"{output.name}: {words.aggregate(output.of, panes=bool(feeding))}" for output in stage.aggregates
    )
    return (f"{key[0].upper()}{key[1:]}:", *columns)


def outputs(window: Remembering) -> Iterator[str]:
    """Yield what rows a function sends elsewhere."""
    for output in window.outputs:
        rows = ", ".join(f"{column.name} ({column.type})" for column in output.returns)
        yield f"and to {output.name}: {rows}"


def where(stage: Stage) -> tuple[str, ...]:
    """Say where results belong."""
    said = words.window(stage.window)
    return (f"{said[0].upper()}{said[1:]}.",)


def when(stage: Stage, feeding: list[str]) -> tuple[str, ...]:
    """Say when panes appear, and how long they may change."""
    if isinstance(stage.window, Relayed):
        allowed = words.duration(stage.lateness)
        return (
            f"When they come; they correct a window for {allowed} behind what they say of the watermark.",
        )
    if isinstance(stage.window, Remembering) and stage.window.passes:
        return ("With the batch that brings the record; nothing is late.",)
    if isinstance(stage.window, Remembering) and stage.window.by_time:
        return (
            "A record is told when the watermark has passed it, a timer between the records where it lies.",
            "Records behind the watermark go to the late table.",
        )
    if isinstance(stage.window, Remembering):
        return (
            "With each batch that has records of the key, and when a timer of the key is due; nothing is late.",
        )
    if isinstance(stage.window, Tumbling | SlidingOrder):
        return ("Each window shows one pane, when its policy says so; nothing is late.",)
    if isinstance(stage.window, PairWindow):
        return (sure(stage), lateness(stage))
    said = fires(stage)
    rest = [ON_TIME] if stage.on_time_pane == "when_changed" else []
    rest += [FINAL[stage.final_pane]] if stage.final_pane in FINAL else []
    rest += ["It may finish; what comes later goes to the late table."] if stage.may_finish else []
    late = f"It takes every correction of {words.joined(feeding)}." if feeding else lateness(stage)
    return (f"{said[0].upper()}{said[1:]}.", late, *rest)


def fires(stage: Stage) -> str:
    """Say when a window shows a pane; where it closes at its end, nothing comes after that."""
    if stage.trigger == Default() and isinstance(stage.window, Global):
        return "when the input has ended"
    match stage.trigger:
        case Default() if stage.lateness == 0:
            said = "when the watermark passes the end of the window"
        case AfterWatermark(early, late) if stage.lateness == 0 and (early or late):
            said = words.up_to_end(early)
        case _:
            said = words.trigger(stage.trigger)
    return said.replace("the watermark", "the batch clock") if by_processing_time(stage.window) else said


def sure(stage: Stage) -> str:
    """Say when a row of a join without windows is shown."""
    if isinstance(stage.window, Between):
        return "A pair is shown when its second record comes, and who found nobody when nobody can come any more."
    return f"A record is shown when the watermark has passed it{words.by(stage.lateness)}."


def lateness(stage: Stage) -> str:
    """Say until when a record is still taken."""
    if isinstance(stage.window, PairWindow):
        behind = f"more than {words.duration(stage.lateness)} behind" if stage.lateness else "behind"
        return f"Records that come {behind} the watermark go to the late table."
    if isinstance(stage.window, Global):
        return "No record is late: the window has no end."
    if by_processing_time(stage.window):
        return "No record is late; a window closes when the clock passes its end."
    if stage.lateness == 0:
        return "Records behind the watermark's passing of the end go to the late table."
    allowed = words.duration(stage.lateness)
    return f"Late records correct a window for {allowed} of event time; after that they go to the late table."


def how(stage: Stage) -> tuple[str, ...]:
    """Say how panes of a window relate."""
    if isinstance(stage.window, Relayed):
        return ("As changes: a pane brings an element, or takes it back.",)
    if isinstance(stage.window, Remembering):
        return ("A row stands by itself, and is never corrected.",)
    if isinstance(stage.window, PairWindow):
        return ("A row stands by itself, and is never corrected.",)
    if isinstance(stage.window, Tumbling | SlidingOrder):
        return ("A window has one pane, which is never corrected.",)
    return (HOW[stage.accumulation],)
