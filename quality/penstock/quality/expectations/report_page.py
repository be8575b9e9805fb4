"""A self-contained HTML page of all expectations and their results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from os.path import relpath
from pathlib import Path
from typing import Any

from penstock.core.files import write_atomically
from penstock.quality.expectations.check_results import BatchCheckResult, ExpectationResult
from penstock.quality.expectations.suite import Expectation, Suite

PAGE_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 1.5rem; color: #1b1f23;
  background: #fff }
h1 { font-size: 1.6rem; margin: 0 0 1rem } h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem }
p { margin: .2rem 0 .8rem; color: #57606a } a { color: #0550ae }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th { font-size: .8rem; font-weight: 600; color: #57606a; background: #f6f8fa }
th, td { text-align: left; vertical-align: top; padding: .5rem .7rem; border-bottom: 1px solid #d0d7de }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
td.state { white-space: nowrap } .why { color: #57606a }
code { font: .86em/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
.example { display: block; background: #f6f8fa; border-radius: 4px; padding: .1rem .4rem; margin-bottom: .2rem }
.failed { color: #b42318; font-weight: 600 } .passed { color: #1a7f37 } .none { color: #57606a }
.action { border: 1px solid #d0d7de; border-radius: 1rem; font-size: .8rem; padding: 0 .5rem; margin-left: .3rem }
details { margin-top: .5rem } ul { margin: .3rem 0; padding-left: 1.2rem }
"""


@dataclass(frozen=True)
class ColumnDescription:
    """A column of a topic or table: its type, its meaning, its origin, and whether it is personal data."""

    name: str
    type: str
    description: str
    made_from: Sequence[str] = ()
    is_personal: bool = False


@dataclass(frozen=True)
class SuiteReport:
    """A suite and its results.

    A table has the results of its batches, newest first. A topic has the number of records per day that broke
    each check.
    """

    suite: Suite
    results: Sequence[BatchCheckResult] = ()
    broken_counts: Mapping[str, int] = field(default_factory=dict)
    columns: Sequence[ColumnDescription] = ()
    owner: str = ""
    """The owner of the topic or table."""
    is_read: bool = True
    """Whether any pipeline reads the topic. A topic that no pipeline reads is not checked."""

    plots_file: Path | None = None
    """The page with the plots of its statistics, if there is one."""

    @property
    def newest_result(self) -> BatchCheckResult | None:
        """The result of the last checked batch."""
        return self.results[0] if self.results else None


def write_report_page(
    folder: Path, suite_reports: Sequence[SuiteReport], unusable_suites: Mapping[str, Exception] | None = None
) -> Path:
    """Write the page atomically and return its path. `unusable_suites` maps suites to errors."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    write_atomically(page, render_page(suite_reports, folder, unusable_suites))
    return page


def render_page(
    suite_reports: Sequence[SuiteReport], folder: Path, unusable_suites: Mapping[str, Exception] | None = None
) -> str:
    """Return the HTML of the page. Links to files are relative to `folder`."""
    body = "".join(part for suite_report in suite_reports for part in _render_section(suite_report, folder))
    head = (
        "<meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>Expectations</title><style>{PAGE_STYLE}</style>"
    )
    overview = "".join(_render_overview(suite_reports, unusable_suites or {}))
    return (
        f"<!doctype html><html lang='en'><head>{head}</head>"
        f"<body><h1>Expectations</h1>{overview}{body}</body></html>"
    )


def _render_overview(
    suite_reports: Sequence[SuiteReport], unusable_suites: Mapping[str, Exception]
) -> Iterator[str]:
    yield "<div class='scroll'><table><tr><th>topic or table</th><th class='number'>expectations</th>"
    yield "<th class='number'>failed</th><th>of</th><th>state</th></tr>"
    for suite_report in suite_reports:
        subject = escape(suite_report.suite.subject)
        unmet_count, checked_text = _count_unmet(suite_report)
        state = (
            "<span class='none'>not checked yet</span>"
            if unmet_count is None
            else _render_state(unmet_count == 0)
        )
        yield (
            f"<tr><td><a href='#{subject}'>{subject}</a></td>"
            f"<td class='number'>{len(suite_report.suite.expectations)}</td>"
        )
        yield f"<td class='number'>{'' if unmet_count is None else unmet_count}</td><td>{checked_text}</td>"
        yield f"<td class='state'>{state}</td></tr>"
    for subject, problem in unusable_suites.items():
        yield f"<tr><td>{escape(subject)}</td><td colspan='3'>{escape(str(problem))}</td>"
        yield "<td class='state failed'>invalid</td></tr>"
    yield "</table></div>"


def _count_unmet(suite_report: SuiteReport) -> tuple[int | None, str]:
    """Return the number of failed expectations, and what was checked."""
    if suite_report.suite.topic is not None:
        unmet_count = sum(count > 0 for count in suite_report.broken_counts.values())
        return (unmet_count, "records of one day") if suite_report.is_read else (None, "")
    if suite_report.newest_result is None:
        return None, ""
    return sum(
        not result.passed for result in suite_report.newest_result.results
    ), f"<code>{escape(suite_report.newest_result.batch.label)}</code>"


def _render_section(suite_report: SuiteReport, folder: Path) -> Iterator[str]:
    suite, subject = suite_report.suite, escape(suite_report.suite.subject)
    owner = f" Owner: {escape(suite_report.owner)}." if suite_report.owner else ""
    yield (
        f"<h2 id='{subject}'>{subject}</h2>"
        f"<p>{_render_status(suite_report)}{owner}{_render_plots_link(suite_report, folder)}</p>"
    )
    yield "<div class='scroll'><table><tr><th style='width: 50%'>expectation</th><th>result</th>"
    yield "<th style='width: 30%'>examples</th></tr>"
    results_by_name = (
        {
            expectation_result.name: expectation_result
            for expectation_result in suite_report.newest_result.results
        }
        if suite_report.newest_result
        else {}
    )
    for expectation in suite.expectations:
        is_stream_checked = suite.topic is not None and suite_report.is_read
        result_html = (
            _render_broken_count(expectation, suite_report.broken_counts)
            if is_stream_checked
            else _render_result(results_by_name.get(expectation.name))
        )
        examples = _render_examples(results_by_name.get(expectation.name), folder)
        yield (
            f"<tr id='{subject}-{expectation.name}'><td>{_render_expectation(expectation)}</td>"
            f"<td>{result_html}</td><td>{examples}</td></tr>"
        )
    yield "</table></div>"
    yield from _render_columns(suite_report.columns)
    if len(suite_report.results) > 1:
        lines = (
            f"<li>{_render_state(batch_result.passed)} <code>{escape(batch_result.batch.label)}</code></li>"
            for batch_result in suite_report.results[1:]
        )
        yield f"<details><summary>batches before</summary><ul>{''.join(lines)}</ul></details>"


def _render_columns(columns: Sequence[ColumnDescription]) -> Iterator[str]:
    if not columns:
        return
    yield "<details><summary>columns</summary><div class='scroll'><table>"
    yield "<tr><th>column</th><th>type</th><th>description</th><th>derived from</th></tr>"
    for column in columns:
        tag = "<span class='action'>personal</span>" if column.is_personal else ""
        made_from = "<br>".join(f"<code>{escape(source)}</code>" for source in column.made_from)
        yield f"<tr><td><code>{escape(column.name)}</code>{tag}</td><td><code>{escape(column.type)}</code></td>"
        yield f"<td>{escape(column.description)}</td><td>{made_from}</td></tr>"
    yield "</table></div></details>"


def _render_status(suite_report: SuiteReport) -> str:
    newest_result = suite_report.newest_result
    if suite_report.suite.topic is not None and not suite_report.is_read:
        return "No pipeline reads this topic, so it is not checked."
    if suite_report.suite.topic is not None:
        return "Checked when records are read. The table <code>checks/&lt;stream&gt;</code> counts failures."
    if newest_result is None:
        return "No batch is checked yet: no window is final, or no check has run."
    checked_at = datetime.fromtimestamp(newest_result.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"Batch <code>{escape(newest_result.batch.label)}</code>, checked at {checked_at}."


def _render_plots_link(suite_report: SuiteReport, folder: Path) -> str:
    if suite_report.plots_file is None or not suite_report.plots_file.exists():
        return ""
    return f" <a href='{escape(relpath(suite_report.plots_file, folder))}'>statistics over time</a>"


def _render_expectation(expectation: Expectation) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in expectation.kwargs.items())
    action = f"<span class='action'>{expectation.action}</span>" if expectation.action else ""
    row_html = f"<code>{escape(expectation.type)}</code>{action}<br><code>{escape(arguments)}</code>"
    return row_html + (f"<br><span class='why'>{escape(expectation.why)}</span>" if expectation.why else "")


def _render_broken_count(expectation: Expectation, broken_counts: Mapping[str, int]) -> str:
    count = broken_counts.get(expectation.name, 0)
    return f"{_render_state(count == 0)}<br>{count:,} records of one day failed"


def _render_result(result: ExpectationResult | None) -> str:
    if result is None:
        return "<span class='none'>not checked yet</span>"
    if result.problem is not None:
        return f"{_render_state(passed=False)}<br>{escape(result.problem)}"
    if result.unexpected is not None:
        return f"{_render_state(result.passed)}<br>{result.unexpected:,} of {result.checked or 0:,} rows"
    return f"{_render_state(result.passed)}<br>{escape(_format_value(result.observed))}"


def _render_examples(result: ExpectationResult | None, folder: Path) -> str:
    if result is None or result.passed:
        return ""
    examples = "".join(
        f"<code class='example'>{escape(_format_value(example))}</code>" for example in result.examples
    )
    return examples + (
        f"<a href='{escape(relpath(result.rows, folder))}'>unexpected rows</a>" if result.rows else ""
    )


def _render_state(passed: bool) -> str:
    return "<span class='passed'>passed</span>" if passed else "<span class='failed'>failed</span>"


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    return "" if value is None else str(value)
