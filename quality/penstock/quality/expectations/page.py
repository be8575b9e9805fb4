"""A page of all that is expected and of what came of it: one file, which loads nothing from anywhere."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from penstock.quality.expectations.outcome import Met, Outcome
from penstock.quality.expectations.suite import Expectation, Suite

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1b1f23 }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #d0d7de }
code { font-size: .9em } .why { color: #57606a }
.wrong { color: #b42318; font-weight: 600 } .right { color: #1a7f37 }
"""

Shown = tuple[Suite, Sequence[Outcome]]
"""A suite, and the outcomes of its table from young to old; none for a topic."""


def publish(folder: Path, shown: Sequence[Shown]) -> Path:
    """Write the page, whole or not at all, and return where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    page, partial = folder / "index.html", folder / "index.partial"
    partial.write_text(rendered(shown), "utf-8")
    partial.replace(page)
    return page


def rendered(shown: Sequence[Shown]) -> str:
    """Return the page's text."""
    body = "".join(part for suite, outcomes in shown for part in _section(suite, outcomes))
    head = f"<meta charset='utf-8'><title>What is expected</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body><h1>What is expected</h1>{body}</body></html>"


def _section(suite: Suite, outcomes: Sequence[Outcome]) -> Iterator[str]:
    newest = outcomes[0] if outcomes else None
    yield f"<h2 id='{escape(suite.about)}'>{escape(suite.about)}</h2><p>{_about(suite, newest)}</p>"
    found = {one.name: one for one in newest.met} if newest else {}
    yield "<table><tr><th>expected</th><th>in the last batch</th><th>examples</th></tr>"
    for one in suite.expectations:
        yield f"<tr id='{escape(suite.about)}-{one.name}'>{_row(one, found.get(one.name))}</tr>"
    yield "</table>"
    if len(outcomes) > 1:
        lines = (
            f"<li>{_state(outcome.passed)} {escape(outcome.batch.label)}</li>" for outcome in outcomes[1:]
        )
        yield f"<details><summary>batches before</summary><ul>{''.join(lines)}</ul></details>"


def _about(suite: Suite, newest: Outcome | None) -> str:
    if suite.of_topic is not None:
        return "Checked while records are read; the table <code>checks/&lt;stream&gt;</code> counts what is broken."
    if newest is None:
        return "No batch was checked yet."
    at = datetime.fromtimestamp(newest.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"Batch <code>{escape(newest.batch.label)}</code>, checked at {at}: {_state(newest.passed)}"


def _row(one: Expectation, found: Met | None) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in one.kwargs.items())
    action = f" <b>{one.action}</b>" if one.action else ""
    said = f"<code>{escape(one.type)}</code>{action}<br><code>{escape(arguments)}</code>"
    said += f"<br><span class='why'>{escape(one.why)}</span>"
    return "".join(f"<td>{cell}</td>" for cell in (said, _found(found), _examples(found)))


def _found(found: Met | None) -> str:
    if found is None:
        return ""
    if found.problem is not None:
        return f"{_state(passed=False)}<br>{escape(found.problem)}"
    if found.unexpected is not None:
        return f"{_state(found.passed)}<br>{found.unexpected:,} of {found.checked or 0:,} rows"
    return f"{_state(found.passed)}<br>{escape(_text(found.observed))}"


def _examples(found: Met | None) -> str:
    if found is None or found.passed:
        return ""
    link = f"<br><a href='file://{escape(found.rows)}'>the rows</a>" if found.rows else ""
    return "<br>".join(f"<code>{escape(_text(example))}</code>" for example in found.examples) + link


def _state(passed: bool) -> str:
    return "<span class='right'>met</span>" if passed else "<span class='wrong'>not met</span>"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    return "" if value is None else str(value)
