"""What others have taught is shown beside ours: what is said of it, and who agrees to an installation."""

import re
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.platform.cli.main import penstock
from penstock.platform.demo import comparisons
from penstock.platform.demo.comparisons import beam, dstreams, record_at_a_time
from penstock.platform.demo.comparisons.comparison import ComparisonResult, ComparisonSetup
from penstock.platform.errors import DemoError
from penstock.platform.settings import Settings

PANE = {"key": "to", "value": 2, "window": [0, 10], "pane": 0, "timing": "early"}


def test_each_has_a_module_that_runs_it_and_a_page() -> None:
    for name in comparisons.COMPARISONS:
        assert callable(import_module(f"{comparisons.__name__}.{name}").run)
    shown = [each.name for each in Path(comparisons.__file__).parent.iterdir() if each.suffix != ".pyc"]
    assert {Path(name).stem for name in shown} - {"__init__", "__pycache__", "comparison"} == set(
        comparisons.COMPARISONS
    )


def test_panes_that_one_of_two_shows_alone_are_told_and_stand_in_the_page(tmp_path: Path) -> None:
    late = {**PANE, "timing": "late"}
    told = beam.summarize_comparison(
        {"same": ([PANE, late], [late, PANE]), "other": ([PANE], [])}, tmp_path / "p.md"
    )
    assert told.rows == [("same", 2, 2, "equal"), ("other", 1, 0, "different")]
    assert not told.is_equal
    written = (tmp_path / "p.md").read_text("utf-8")
    assert len(re.findall(r"\| 1 \| 1 \|$", written, re.MULTILINE)) == 2
    assert len(re.findall(r"\| 1 \| 0 \|$", written, re.MULTILINE)) == 1


def test_a_verb_that_says_something_else_of_one_batch_is_told(tmp_path: Path) -> None:
    there = [Counter({("to", 2): 1}), Counter[tuple[Any, ...]]()]
    here = [there[0], Counter({("be",): 2})]
    told = dstreams.summarize_comparison({"map": (there, there), "count": (there, here)}, tmp_path / "p.md")
    assert told.rows == [("map", 2, 1, "equal"), ("count", 2, 1, "different")]
    assert not told.is_equal
    assert "| 1 |  | be<br>be |" in (tmp_path / "p.md").read_text("utf-8")


def test_an_alert_that_comes_twice_is_told_and_both_curves_are_drawn(tmp_path: Path) -> None:
    count = record_at_a_time.WARM_UP_PAYMENTS + round(
        record_at_a_time.PAYMENTS_PER_SECOND * record_at_a_time.DURATION_S
    )
    numbers = [number for number in range(count) if number % 3 == 0]
    right = [({"payment": f"p{number}", "came": number}, number + 7) for number in numbers]
    wrong = [*right[:-1], right[0]]
    picture = tmp_path / "curves.svg"
    told = record_at_a_time.summarize_comparison({"one": right, "other": wrong}, picture)
    assert [(row[0], row[2], row[-1]) for row in told.rows] == [
        ("one", "7", "equal"),
        ("other", "7", "different"),
    ]
    assert not told.is_equal
    assert picture.read_text("utf-8").count('class="curve"') == 2


def test_apache_beam_is_not_installed_unless_somebody_agrees(tmp_path: Path) -> None:
    asked: list[str] = []

    def refused(question: str) -> bool:
        asked.append(question)
        return False

    setting = ComparisonSetup(
        Settings(root=tmp_path), tmp_path / "demo", lambda _: nullcontext(lambda _: None), refused
    )
    with pytest.raises(DemoError, match=r"penstock demo beam --yes"):
        beam.run(setting)
    assert len(asked) == 1
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize(("equal", "code"), [(True, 0), (False, 1)])
def test_where_two_differ_the_command_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equal: bool, code: int
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    result = tmp_path / "beam.md"
    result.write_text("all panes", "utf-8")
    told = ComparisonResult(
        ("program",), [("visits",)], "said", equal, result, Path("pipelines/docs/beam.md")
    )
    monkeypatch.setattr(comparisons, "run_comparison", lambda *_: told)
    answer = CliRunner().invoke(penstock, ["demo", "beam", "--out", str(tmp_path / "out")])
    assert answer.exit_code == code
    assert (tmp_path / "out" / "beam.md").read_text("utf-8") == "all panes"
    assert f"result: {tmp_path / 'out' / 'beam.md'}" in answer.output
