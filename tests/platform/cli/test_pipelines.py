"""Commands that explain pipelines, run transcripts and show state."""

import json
from pathlib import Path

import pytest

from penstock.pipelines import catalog


def test_a_pipeline_is_explained_by_its_four_questions(run) -> None:
    result = run("explain", "sensor_minute")
    assert result.code == 0
    for word in ("what", "where", "when", "how"):
        assert f"\n{word} " in result.out
    explained = json.loads(run("explain", "sensor_minute", "--json").out)
    assert explained["name"] == "sensor_minute"
    assert set(explained["stages"]["sensor_minute"]) == {"what", "where", "when", "how"}


def test_an_unknown_pipeline_is_a_usage_error(run) -> None:
    result = run("explain", "nonsense")
    assert result.code == 2
    assert "`penstock demo --list` lists all pipelines" in result.err


def build_case(name: str, values: list[int]) -> dict[str, object]:
    """Build a case with one record in a window of ten seconds, and its expected values."""
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
    """Two cases, of which the second fails."""
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [build_case("right", [7]), build_case("wrong", [8])]}), "utf-8")
    return file


def test_each_case_is_a_line_and_a_failed_one_exits_with_1(run, cases: Path) -> None:
    result = run("transcript", "run", str(cases), "--engine", "reference")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [(line["id"], line["ok"]) for line in lines] == [("right", True), ("wrong", False)]
    assert {"expected", "got"} <= set(lines[1])
    assert result.code == 1


def test_invalid_cases_are_named_with_file_and_field(run, tmp_path: Path) -> None:
    broken = build_case("broken", [7]) | {"steps": [{"watermark": 1}, {"expect": 3}]}
    nameless = {name: value for name, value in broken.items() if name != "id"}
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"cases": [broken, nameless, build_case("right", [7])]}), encoding="utf-8")
    result = run("transcript", "run", str(path), "--engine", "reference")
    assert [json.loads(line)["ok"] for line in result.out.splitlines()] == [False, False, True]
    assert result.code == 2
    for name in ("broken", "number 2"):
        assert f"{path}, case {name}: step 2, `expect` is 3; write a list of panes" in result.err


def test_a_file_without_cases_is_a_usage_error(run, tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text('{\n "figures": []\n}', encoding="utf-8")
    result = run("transcript", "run", str(path), "--engine", "reference")
    assert (result.code, f"{path}: the document has no cases" in result.err) == (2, True)


def test_a_case_is_chosen_by_its_id(run, cases: Path) -> None:
    arguments = ("transcript", "run", str(cases), "--engine", "reference")
    result = run(*arguments, "--id", "right")
    assert (len(result.out.splitlines()), result.code) == (1, 0)
    assert "no case has the id nonsense" in run(*arguments, "--id", "nonsense").err


def test_state_is_listed_shown_and_exported(run, home: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq
    from tests.pipelines.engine.batch.stream_bench import Bench
    from tests.pipelines.engine.batch.test_crashes import PLANS, run_batches

    run_batches(Bench(PLANS["two stages"], tmp_path))
    (home / "streams").mkdir(parents=True)
    (tmp_path / "stream").rename(home / "streams" / "hashtags")
    listed = json.loads(run("state", "list", "hashtags", "--json").out)
    assert [(row["stage"], row["batch"]) for row in listed] == [("stream", 5), ("whole", 5)]
    shown = run("state", "show", "hashtags", "--batch", "2", "--key", "key=b", "--json")
    assert [(row["key"], row["records"]) for row in json.loads(shown.out)] == [("b", 1)]
    assert "the state is empty" in run("state", "show", "hashtags", "--key", "key=nobody").out
    invalid = run("state", "show", "hashtags", "--stage", "third")
    assert (invalid.code, "known names: stream, whole" in invalid.err) == (2, True)
    unknown = run("state", "list", "nonsense")
    assert (
        unknown.code,
        "there is no stream 'nonsense'; `penstock demo --list` lists the pipelines" in unknown.err,
    ) == (2, True)
    assert "its key has no field 'records'" in run("state", "show", "hashtags", "--key", "records=1").err
    nowhere = run("state", "export", "hashtags", "--to", str(tmp_path / "nowhere" / "state.parquet"))
    assert (nowhere.code, "does not exist; create it" in nowhere.err) == (2, True)
    exported = run("state", "export", "hashtags", "--batch", "2", "--to", str(tmp_path / "state.parquet"))
    assert exported.out == f"4 rows written to {tmp_path / 'state.parquet'}\n"
    filtered = run(
        "state", "export", "hashtags", "--batch", "2", "--key", "key=b", "--to", str(tmp_path / "b.parquet")
    )
    assert filtered.out == f"1 rows written to {tmp_path / 'b.parquet'}\n"
    assert [(row["key"], row["records"]) for row in pq.read_table(tmp_path / "b.parquet").to_pylist()] == [
        ("b", 1)
    ]


def test_a_pipeline_is_explained_in_one_form_at_a_time(run) -> None:
    assert "use one of them" in run("explain", "hashtags", "--json", "--mermaid").err
    assert "use one of them" in run("explain", "hashtags", "--as", "sql", "--json").err


def test_a_pipeline_is_printed_in_another_form(run) -> None:
    printed = run("explain", "batch_runs", "--as", "sql")
    assert printed.code == 0
    assert (
        printed.out
        == """\
CREATE STREAM batch_runs AS
SELECT
  oven,
  COUNT(*) AS readings,
  MAX(temperature) AS hottest,
  AVG(temperature) AS mean,
  LAST_VALUE(recipe, ORDER => arrival) AS recipe
FROM ovens WITH (idle_after = INTERVAL '5' SECONDS)
GROUP BY oven, TUMBLING(PUNCTUATION('phase = \\'end\\''))
INTO LOG(batch_runs);
"""
    )
    assert run("explain", "batch_runs", "--as", "python").out.startswith(
        "from penstock.stream import count, "
    )
    refused = run("explain", "word_totals", "--as", "yaml")
    assert refused.code == 2
    assert "is a Python function of the pipeline's own file" in refused.err


def test_demos_are_listed_without_running(run, home: Path) -> None:
    listed = json.loads(run("demo", "--list", "--json").out)
    assert [entry["pipeline"] for entry in listed] == list(catalog.pipeline_names())
    assert all(entry["description"] and entry["reads"] for entry in listed)
    assert not home.exists()


def test_a_demo_without_or_with_an_unknown_pipeline_is_refused(run) -> None:
    assert "name a pipeline or use --all" in run("demo").err
    result = run("demo", "nonsense")
    assert result.code == 2
    assert "there is no pipeline 'nonsense'; `penstock demo --list` lists all" in result.err
