"""The page of a pipeline: what it is for, the picture, the four questions, the result, and how to see it again."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import pyarrow as pa

from penstock.pipelines import catalog
from penstock.pipelines.explain import explain
from penstock.pipelines.plan.columns import values_of
from penstock.pipelines.tables.legible import legible
from penstock.platform.demo.checks import Checked
from penstock.platform.demo.run import Ran
from penstock.platform.streams import plan_of

ROWS = 8
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
ACCOUNTS = ("read", "folded", "late", "quarantined", "duplicate", "filtered")
TIMINGS = ("early", "on_time", "late", "retract")


def page(ran: Ran) -> str:
    """Return the page as Markdown."""
    return "\n".join(lines(ran)) + "\n"


def lines(ran: Ran) -> Iterator[str]:
    """Yield its lines."""
    name = ran.plan.name
    demo = ran.demo
    yield f"# {name}"
    yield catalog.about(name)
    yield ""
    yield f"![Panes of {name}: event time against processing time]({name}.svg)"
    yield ""
    yield from (demo.note, "") if demo.note else ()
    yield from the_questions(name)
    yield "## The result"
    yield "Its newest rows:"
    yield ""
    yield from markdown(*newest(ran))
    yield ""
    yield accounted(ran)
    yield ""
    yield from the_checks(ran)
    yield "## How it is written"
    yield from definition(name)
    yield ""
    yield f"`penstock demo {name}` made this page and its picture, from seed {demo.seed}: {pace(ran)}."


def the_questions(name: str) -> Iterator[str]:
    """Yield the four questions, for each stage."""
    explanation = explain(plan_of(name))
    for stage, asked in explanation.questions:
        several = f" of `{stage}`" if len(explanation.questions) > 1 else ""
        for question in asked:
            first, *others = question.answers
            yield f"- **{question.about.capitalize()}**{several}: {uncapitalized(first)}"
            yield from (f"  {'' if first.endswith('.') else '- '}{other}" for other in others)
        yield ""


def the_checks(ran: Ran) -> Iterator[str]:
    """Yield what is expected of each table, and whether it came so."""
    yield "## What is expected of it"
    for about, of_table in groupby(ran.checked, key=lambda one: one.table):
        found = list(of_table)
        yield f"`{about}`, {found[0].rows:,} rows (`quality/penstock/quality/suites/{about}.yaml`):"
        yield from (f"- {one.expectation.why} `{one.expectation.name}`: {verdict(one)}" for one in found)
        yield ""


def verdict(one: Checked) -> str:
    """Say what came of an expectation."""
    return f"{one.broken:,} rows do not meet it" if one.broken else "met"


def uncapitalized(sentence: str) -> str:
    """Return a sentence as it goes on after a colon."""
    return sentence[:1].lower() + sentence[1:]


def newest(ran: Ran) -> tuple[list[str], list[list[Any]]]:
    """Return the columns that a person looks at, and the newest rows of the result."""
    table, stage = legible(pa.table(ran.result.to_pyarrow_table())), ran.told.stage
    wanted = [*stage.key, "window_start", "window_end", *values_of(stage), "timing", "pane"]
    columns = [name for name in wanted if name in table.column_names]
    found = [row for row in table.to_pylist() if row.get("kind", "insert") == "insert"]
    found.sort(key=lambda row: [str(row[part]) for part in stage.key])
    found.sort(key=lambda row: (row["window_start"] or BEFORE_ALL, row.get("batch_id", 0)), reverse=True)
    return columns, [[row[name] for name in columns] for row in found[:ROWS]]


def accounted(ran: Ran) -> str:
    """Say what became of every record, and how many panes of each kind there were."""
    accounts = [account for outcome in ran.outcomes for account in outcome.accounts]
    fates = [(fate, sum(getattr(account, fate) for account in accounts)) for fate in ACCOUNTS]
    said = ", ".join(f"{count:,} {fate}" for fate, count in fates if count or fate == "late")
    shown = [(timing, sum(outcome.panes.get(timing, 0) for outcome in ran.outcomes)) for timing in TIMINGS]
    words = {"on_time": "on time", "retract": "taken back"}
    panes = ", ".join(f"{count:,} {words.get(timing, timing)}" for timing, count in shown if count)
    return f"Records: {said}. Panes of all keys and stages: {panes or 'none'}."


def pace(ran: Ran) -> str:
    """Say what was fed, and how."""
    demo, sources = ran.demo, [source.name for source in ran.plan.sources]
    count = len(ran.told.records)
    return f"{count:,} records of {', '.join(sources)} over {demo.last}, a batch every {demo.step}"


def definition(name: str) -> Iterator[str]:
    """Yield the pipeline's file."""
    file = catalog.file_of(name)
    yield f"`pipelines/penstock/pipelines/catalog/{file.name}`:"
    yield "```python" if file.suffix == ".py" else "```yaml"
    yield file.read_text("utf-8").strip()
    yield "```"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Yield a table."""
    if not rows:
        yield "(no rows)"
        return
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(cell(value) for value in row)} |"


def cell(value: Any) -> str:
    """Return a value as a cell holds it."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S" if not value.microsecond else "%Y-%m-%d %H:%M:%S.%f")[
                :23
            ]
        case list():
            return ", ".join(cell(item) for item in value).replace("|", "\\|")
        case _:
            return str(value).replace("|", "\\|")
