"""The page of a pipeline: description, diagram, the four questions, results, expectations and definition."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import pyarrow as pa

from penstock.engine.batch.accounts import ACCOUNT_COUNTS
from penstock.engine.explain import explain
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.tables.timestamp_clamping import clamp_timestamps
from penstock.pipelines import catalog
from penstock.platform.demo.demo_run import DemoResult
from penstock.platform.demo.table_checks import TableCheck
from penstock.platform.services.stream_catalog import load_plan

MAX_ROWS = 8
MIN_TIME = datetime.min.replace(tzinfo=UTC)
PANE_TIMINGS = ("early", "on_time", "late", "retract")


def render_page(result: DemoResult) -> str:
    """Return the page as Markdown."""
    return "\n".join(iter_page_lines(result)) + "\n"


def iter_page_lines(result: DemoResult) -> Iterator[str]:
    """Yield the lines of the page."""
    name = result.plan.name
    demo = result.demo
    yield f"# {name}"
    yield catalog.read_description(name)
    yield ""
    yield f"![Panes of {name}: event time against processing time]({name}.svg)"
    yield ""
    yield from (demo.note, "") if demo.note else ()
    yield from iter_question_lines(name)
    yield "## Results"
    yield "The newest rows:"
    yield ""
    yield from iter_table_lines(*select_newest_rows(result))
    yield ""
    yield describe_accounts(result)
    yield ""
    yield from iter_check_lines(result)
    yield "## Definition"
    yield from iter_definition_lines(name)
    yield ""
    yield f"`penstock demo {name}` made this page and its picture, from seed {demo.seed}: {describe_pace(result)}."


def iter_question_lines(name: str) -> Iterator[str]:
    """Yield the four questions of each stage."""
    explanation = explain(load_plan(name))
    for stage, questions in explanation.questions:
        stage_suffix = f" of `{stage}`" if len(explanation.questions) > 1 else ""
        for question in questions:
            first, *more_answers = question.answers
            yield f"- **{question.subject.capitalize()}**{stage_suffix}: {lower_first_letter(first)}"
            yield from (f"  {'' if first.endswith('.') else '- '}{other}" for other in more_answers)
        yield ""


def iter_check_lines(result: DemoResult) -> Iterator[str]:
    """Yield the expectations of each table and their results."""
    yield "## Expectations"
    for table_path, checks_of_table in groupby(result.table_checks, key=lambda check: check.table):
        table_checks = list(checks_of_table)
        suite_file = f"quality/penstock/quality/suites/{table_path}.yaml"
        yield f"`{table_path}`, {table_checks[0].rows:,} rows (`{suite_file}`):"
        yield from (
            f"- {check.expectation.why} `{check.expectation.name}`: {describe_check(check)}"
            for check in table_checks
        )
        yield ""


def describe_check(check: TableCheck) -> str:
    """Format the result of an expectation."""
    return f"{check.unexpected_rows:,} rows do not meet it" if check.unexpected_rows else "met"


def lower_first_letter(sentence: str) -> str:
    """Return a sentence with a lowercase first letter, for use after a colon."""
    return sentence[:1].lower() + sentence[1:]


def select_newest_rows(result: DemoResult) -> tuple[list[str], list[list[Any]]]:
    """Return the columns to show and the newest rows of the result."""
    table, stage = clamp_timestamps(pa.table(result.result_table.to_pyarrow_table())), result.run_data.stage
    wanted_columns = [*stage.key, "window_start", "window_end", *stage_value_columns(stage), "timing", "pane"]
    columns = [name for name in wanted_columns if name in table.column_names]
    rows = [row for row in table.to_pylist() if row.get("kind", "insert") == "insert"]
    rows.sort(key=lambda row: [str(row[part]) for part in stage.key])
    rows.sort(key=lambda row: (row["window_start"] or MIN_TIME, row.get("batch_id", 0)), reverse=True)
    return columns, [[row[name] for name in columns] for row in rows[:MAX_ROWS]]


def describe_accounts(result: DemoResult) -> str:
    """Format the number of records by outcome and of panes by timing."""
    accounts = [account for outcome in result.outcomes for account in outcome.accounts]
    fates = [(fate, sum(getattr(account, fate) for account in accounts)) for fate in ACCOUNT_COUNTS]
    fates_text = ", ".join(f"{count:,} {fate}" for fate, count in fates if count or fate == "late")
    pane_counts = [
        (timing, sum(outcome.panes.get(timing, 0) for outcome in result.outcomes)) for timing in PANE_TIMINGS
    ]
    timing_labels = {"on_time": "on time", "retract": "retracted"}
    panes = ", ".join(
        f"{count:,} {timing_labels.get(timing, timing)}" for timing, count in pane_counts if count
    )
    return f"Records: {fates_text}. Panes of all keys and stages: {panes or 'none'}."


def describe_pace(result: DemoResult) -> str:
    """Format the number of input records, their period and the batch interval."""
    demo, sources = result.demo, [source.name for source in result.plan.sources]
    count = len(result.run_data.records)
    return f"{count:,} records of {', '.join(sources)} over {demo.last}, a batch every {demo.step}"


def iter_definition_lines(name: str) -> Iterator[str]:
    """Yield the source of the pipeline."""
    file = catalog.pipeline_file(name)
    yield f"`pipelines/penstock/pipelines/catalog/{file.name}`:"
    yield f"```{'python' if file.suffix == '.py' else file.suffix[1:]}"
    yield file.read_text("utf-8").strip()
    yield "```"


def iter_table_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Yield a Markdown table."""
    if not rows:
        yield "(no rows)"
        return
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(format_cell(value) for value in row)} |"


def format_cell(value: Any) -> str:
    """Format a value for a table cell."""
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
            return ", ".join(format_cell(item) for item in value).replace("|", "\\|")
        case _:
            return str(value).replace("|", "\\|")
