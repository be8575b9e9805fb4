"""A page of all that is expected and of what came of it: one file, which loads nothing from anywhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from os.path import relpath
from pathlib import Path
from typing import Any

from penstock.quality.expectations.outcome import Met, Outcome
from penstock.quality.expectations.suite import Expectation, Suite

STYLE = """
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
.wrong { color: #b42318; font-weight: 600 } .right { color: #1a7f37 } .none { color: #57606a }
.action { border: 1px solid #d0d7de; border-radius: 1rem; font-size: .8rem; padding: 0 .5rem; margin-left: .3rem }
details { margin-top: .5rem } ul { margin: .3rem 0; padding-left: 1.2rem }
"""


@dataclass(frozen=True)
class ColumnShown:
    """A column of a topic or a table: what it is, what it is made from, and whether it tells of a person."""

    name: str
    type: str
    said: str
    made_from: Sequence[str] = ()
    personal: bool = False


@dataclass(frozen=True)
class Shown:
    """A suite, and what came of it.

    A table has the outcomes of its batches, from young to old; a topic how many records of a day broke which check.
    """

    suite: Suite
    outcomes: Sequence[Outcome] = ()
    broken: Mapping[str, int] = field(default_factory=dict)
    columns: Sequence[ColumnShown] = ()
    owner: str = ""
    """Whom to ask about it."""
    read: bool = True
    """Whether any pipeline reads the topic: where none does, nothing is checked, and nothing is met."""

    plots: Path | None = None
    """Where its figures over time are plotted, if they are."""

    @property
    def newest(self) -> Outcome | None:
        """The last batch that was checked."""
        return self.outcomes[0] if self.outcomes else None


def publish(folder: Path, shown: Sequence[Shown], unusable: Mapping[str, Exception] | None = None) -> Path:
    """Write the page, whole or not at all, and return where it is; `unusable` are suites, and why each is."""
    folder.mkdir(parents=True, exist_ok=True)
    page, partial = folder / "index.html", folder / "index.partial"
    partial.write_text(rendered(shown, folder, unusable), "utf-8")
    partial.replace(page)
    return page


def rendered(shown: Sequence[Shown], folder: Path, unusable: Mapping[str, Exception] | None = None) -> str:
    """Return the page's text; `folder` is where it will be, so that files beside it are found with it."""
    body = "".join(part for one in shown for part in _section(one, folder))
    head = (
        "<meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>What is expected</title><style>{STYLE}</style>"
    )
    overview = "".join(_overview(shown, unusable or {}))
    return (
        f"<!doctype html><html lang='en'><head>{head}</head>"
        f"<body><h1>What is expected</h1>{overview}{body}</body></html>"
    )


def _overview(shown: Sequence[Shown], unusable: Mapping[str, Exception]) -> Iterator[str]:
    yield "<div class='scroll'><table><tr><th>topic or table</th><th class='number'>expectations</th>"
    yield "<th class='number'>not met</th><th>of</th><th>state</th></tr>"
    for one in shown:
        about = escape(one.suite.about)
        wrong, of = _summary(one)
        state = "<span class='none'>not checked yet</span>" if wrong is None else _state(wrong == 0)
        yield f"<tr><td><a href='#{about}'>{about}</a></td><td class='number'>{len(one.suite.expectations)}</td>"
        yield f"<td class='number'>{'' if wrong is None else wrong}</td><td>{of}</td>"
        yield f"<td class='state'>{state}</td></tr>"
    for about, problem in unusable.items():
        yield f"<tr><td>{escape(about)}</td><td colspan='3'>{escape(str(problem))}</td>"
        yield "<td class='state wrong'>cannot be used</td></tr>"
    yield "</table></div>"


def _summary(one: Shown) -> tuple[int | None, str]:
    """How many expectations were not met, and of what."""
    if one.suite.of_topic is not None:
        wrong = sum(count > 0 for count in one.broken.values())
        return (wrong, "the records of a day") if one.read else (None, "")
    if one.newest is None:
        return None, ""
    return sum(not met.passed for met in one.newest.met), f"<code>{escape(one.newest.batch.label)}</code>"


def _section(one: Shown, folder: Path) -> Iterator[str]:
    suite, about = one.suite, escape(one.suite.about)
    owner = f" Owner: {escape(one.owner)}." if one.owner else ""
    yield f"<h2 id='{about}'>{about}</h2><p>{_about(one)}{owner}{_over_time(one, folder)}</p>"
    yield "<div class='scroll'><table><tr><th style='width: 50%'>expected</th><th>found</th>"
    yield "<th style='width: 30%'>examples</th></tr>"
    found = {met.name: met for met in one.newest.met} if one.newest else {}
    for each in suite.expectations:
        of_records = suite.of_topic is not None and one.read
        said = _counted(each, one.broken) if of_records else _found(found.get(each.name))
        examples = _examples(found.get(each.name), folder)
        yield f"<tr id='{about}-{each.name}'><td>{_row(each)}</td><td>{said}</td><td>{examples}</td></tr>"
    yield "</table></div>"
    yield from _columns(one.columns)
    if len(one.outcomes) > 1:
        lines = (
            f"<li>{_state(outcome.passed)} <code>{escape(outcome.batch.label)}</code></li>"
            for outcome in one.outcomes[1:]
        )
        yield f"<details><summary>batches before</summary><ul>{''.join(lines)}</ul></details>"


def _columns(columns: Sequence[ColumnShown]) -> Iterator[str]:
    if not columns:
        return
    yield "<details><summary>columns</summary><div class='scroll'><table>"
    yield "<tr><th>column</th><th>type</th><th>what it is</th><th>made from</th></tr>"
    for one in columns:
        tag = "<span class='action'>personal</span>" if one.personal else ""
        made_from = "<br>".join(f"<code>{escape(place)}</code>" for place in one.made_from)
        yield f"<tr><td><code>{escape(one.name)}</code>{tag}</td><td><code>{escape(one.type)}</code></td>"
        yield f"<td>{escape(one.said)}</td><td>{made_from}</td></tr>"
    yield "</table></div></details>"


def _about(one: Shown) -> str:
    newest = one.newest
    if one.suite.of_topic is not None and not one.read:
        return "No pipeline reads it; it is checked by the first one that does."
    if one.suite.of_topic is not None:
        return "Checked while records are read; the table <code>checks/&lt;stream&gt;</code> counts what is broken."
    if newest is None:
        return "No batch was checked yet: none of its windows is final, or nothing has asked for it."
    at = datetime.fromtimestamp(newest.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"Batch <code>{escape(newest.batch.label)}</code>, checked at {at}."


def _over_time(one: Shown, folder: Path) -> str:
    if one.plots is None or not one.plots.exists():
        return ""
    return f" <a href='{escape(relpath(one.plots, folder))}'>its figures over time</a>"


def _row(one: Expectation) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in one.kwargs.items())
    action = f"<span class='action'>{one.action}</span>" if one.action else ""
    said = f"<code>{escape(one.type)}</code>{action}<br><code>{escape(arguments)}</code>"
    return said + (f"<br><span class='why'>{escape(one.why)}</span>" if one.why else "")


def _counted(one: Expectation, broken: Mapping[str, int]) -> str:
    count = broken.get(one.name, 0)
    return f"{_state(count == 0)}<br>{count:,} records of a day broke it"


def _found(found: Met | None) -> str:
    if found is None:
        return "<span class='none'>not checked yet</span>"
    if found.problem is not None:
        return f"{_state(passed=False)}<br>{escape(found.problem)}"
    if found.unexpected is not None:
        return f"{_state(found.passed)}<br>{found.unexpected:,} of {found.checked or 0:,} rows"
    return f"{_state(found.passed)}<br>{escape(_text(found.observed))}"


def _examples(found: Met | None, folder: Path) -> str:
    if found is None or found.passed:
        return ""
    examples = "".join(f"<code class='example'>{escape(_text(example))}</code>" for example in found.examples)
    return examples + (f"<a href='{escape(relpath(found.rows, folder))}'>the rows</a>" if found.rows else "")


def _state(passed: bool) -> str:
    return "<span class='right'>met</span>" if passed else "<span class='wrong'>not met</span>"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    return "" if value is None else str(value)
