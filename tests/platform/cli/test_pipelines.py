"""Pipelines in words, and recorded cases."""

import json
from pathlib import Path

import pytest

from penstock.pipelines import catalog


def test_a_pipeline_is_explained_by_its_four_questions(run) -> None:
    answer = run("explain", "sensor_minute")
    assert answer.code == 0
    for word in ("what", "where", "when", "how"):
        assert f"\n{word} " in answer.out
    explained = json.loads(run("explain", "sensor_minute", "--json").out)
    assert explained["name"] == "sensor_minute"
    assert set(explained["stages"]["sensor_minute"]) == {"what", "where", "when", "how"}


def test_a_pipeline_that_is_not_there_is_wrong_usage(run) -> None:
    answer = run("explain", "nonsense")
    assert answer.code == 2
    assert "`penstock demo --list` lists all pipelines" in answer.err


def case(name: str, values: list[int]) -> dict[str, object]:
    """One record at second 1 in a window of ten seconds, and the values expected of it."""
    return {
        "id": name,
        "unit": "s",
        "window": {"type": "fixed", "size": 10},
        "trigger": {"type": "default"},
        "accumulation": "accumulating",
        "allowed_lateness": 0,
        "steps": [
            {"elements": [{"key": "k", "value": 7, "ts": 1}]},
            {"watermark": 25},
            {"expect": [{"window": [0, 10], "values": values}]},
        ],
    }


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Two cases, of which the second expects what cannot be."""
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [case("right", [7]), case("wrong", [8])]}), "utf-8")
    return file


def test_each_case_is_a_line_and_one_that_differs_is_told_by_the_exit_code(run, cases: Path) -> None:
    answer = run("transcript", "run", str(cases), "--engine", "reference")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert [(line["id"], line["ok"]) for line in lines] == [("right", True), ("wrong", False)]
    assert {"expected", "got"} <= set(lines[1])
    assert answer.code == 1


def test_cases_that_are_none_are_named_with_file_and_field_once_the_others_ran(run, tmp_path: Path) -> None:
    broken = case("broken", [7]) | {"steps": [{"watermark": 1}, {"expect": 3}]}
    nameless = {name: value for name, value in broken.items() if name != "id"}
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"cases": [broken, nameless, case("right", [7])]}), encoding="utf-8")
    answer = run("transcript", "run", str(path), "--engine", "reference")
    assert [json.loads(line)["ok"] for line in answer.out.splitlines()] == [False, False, True]
    assert answer.code == 2
    for name in ("broken", "number 2"):
        assert f"{path}, case {name}: step 2, `expect` is 3; write a list of panes" in answer.err


def test_a_file_of_no_cases_is_wrong_usage(run, tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text('{\n "figures": []\n}', encoding="utf-8")
    answer = run("transcript", "run", str(path), "--engine", "reference")
    assert (answer.code, f"{path}: the document has no cases" in answer.err) == (2, True)


def test_a_case_is_chosen_by_its_id(run, cases: Path) -> None:
    asked = ("transcript", "run", str(cases), "--engine", "reference")
    answer = run(*asked, "--id", "right")
    assert (len(answer.out.splitlines()), answer.code) == (1, 0)
    assert "no case has the id nonsense" in run(*asked, "--id", "nonsense").err


def test_what_a_stream_keeps_is_listed_shown_and_exported(run, home: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq
    from tests.pipelines.engine.batch.stored import Bench
    from tests.pipelines.engine.batch.test_crashes import PLANS, Fuse
    from tests.pipelines.engine.batch.test_crashes import run as ran

    ran(Bench(PLANS["two stages"], tmp_path), Fuse(-1))
    (home / "streams").mkdir(parents=True)
    (tmp_path / "stream").rename(home / "streams" / "hashtags")
    listed = json.loads(run("state", "list", "hashtags", "--json").out)
    assert [(row["stage"], row["batch"]) for row in listed] == [("stream", 5), ("whole", 5)]
    shown = run("state", "show", "hashtags", "--batch", "2", "--key", "key=b", "--json")
    assert [(row["key"], row["records"]) for row in json.loads(shown.out)] == [("b", 1)]
    assert "the state is empty" in run("state", "show", "hashtags", "--key", "key=nobody").out
    wrong = run("state", "show", "hashtags", "--stage", "third")
    assert (wrong.code, "known names: stream, whole" in wrong.err) == (2, True)
    unknown = run("state", "list", "nonsense")
    assert (
        unknown.code,
        "there is no stream 'nonsense'; `penstock demo --list` lists all" in unknown.err,
    ) == (2, True)
    assert "its key has no field 'records'" in run("state", "show", "hashtags", "--key", "records=1").err
    nowhere = run("state", "export", "hashtags", "--to", str(tmp_path / "nowhere" / "state.parquet"))
    assert (nowhere.code, "does not exist; create it" in nowhere.err) == (2, True)
    exported = run("state", "export", "hashtags", "--batch", "2", "--to", str(tmp_path / "state.parquet"))
    assert exported.out == f"4 rows written to {tmp_path / 'state.parquet'}\n"
    only = run(
        "state", "export", "hashtags", "--batch", "2", "--key", "key=b", "--to", str(tmp_path / "b.parquet")
    )
    assert only.out == f"1 rows written to {tmp_path / 'b.parquet'}\n"
    assert [(row["key"], row["records"]) for row in pq.read_table(tmp_path / "b.parquet").to_pylist()] == [
        ("b", 1)
    ]


def test_a_pipeline_is_explained_in_one_form_at_a_time(run) -> None:
    assert "use one of them" in run("explain", "hashtags", "--json", "--mermaid").err


def test_what_can_be_shown_is_listed_without_running_anything(run, home: Path) -> None:
    listed = json.loads(run("demo", "--list", "--json").out)
    assert [each["pipeline"] for each in listed] == list(catalog.pipeline_names())
    assert all(each["description"] and each["reads"] for each in listed)
    assert not home.exists()


def test_a_demonstration_of_nothing_or_of_what_there_is_not_is_refused(run) -> None:
    assert "name a pipeline or use --all" in run("demo").err
    answer = run("demo", "nonsense")
    assert answer.code == 2
    assert "there is no pipeline 'nonsense'; `penstock demo --list` lists all" in answer.err
