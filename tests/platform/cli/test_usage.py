"""Help, completion, exit codes and usage errors."""

import itertools
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.engine.host.control import DesiredRunState
from penstock.platform.cli.main import penstock
from penstock.platform.control import open_control_store

HEAVY = ("pyspark", "dagster", "great_expectations", "polars", "sqlalchemy", "confluent_kafka")


def list_commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], click.Command]]:
    """List the commands that are no groups, with their paths."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    names = command.list_commands(context)
    subcommands = [(name, command.get_command(context, name)) for name in names]
    return [entry for name, sub in subcommands if sub for entry in list_commands(sub, (*path, name))]


COMMANDS = list_commands(penstock)


def check_arguments(command: click.Command, arguments: list[str]) -> None:
    """Check that the command accepts the arguments; files of examples may be missing."""
    try:
        command.make_context("penstock", arguments)
    except click.BadParameter as problem:
        if "does not exist" not in problem.message:
            raise


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_has_help_and_valid_examples(path: tuple[str, ...], command: click.Command) -> None:
    assert command.help
    assert command.epilog, "no example"
    block, _, _ = command.epilog.partition("\n\n")
    lines = [line.removeprefix("Example:").strip() for line in block.splitlines()[1:]]
    for line in lines:
        words = shlex.split(line[line.index("penstock ") :])
        arguments = list(itertools.takewhile(lambda word: word not in (">", ">>", "|"), words))[1:]
        assert tuple(arguments[: len(path)]) == path
        check_arguments(command, arguments[len(path) :])


def test_every_listing_command_has_a_json_option() -> None:
    listing_commands = {("status",), ("doctor",), ("topics", "plan"), ("table", "list"), ("table", "show")}
    listing_commands |= {("producer", "list"), ("producer", "where"), ("env", "list")}
    with_json = {
        path for path, command in COMMANDS if any("--json" in option.opts for option in command.params)
    }
    assert listing_commands <= with_json


def test_the_root_help_names_every_command(run) -> None:
    result = run("--help")
    assert result.code == 0
    for name in penstock.list_commands(click.Context(penstock)):
        assert f"\n  {name} " in result.out


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom penstock.platform.cli.main import penstock\n"
        "penstock.main(['--help'], standalone_mode=False)\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stderr.strip() == "[]"


def test_an_unknown_command_is_a_usage_error(run) -> None:
    result = run("nonsense")
    assert result.code == 2
    assert "No such command 'nonsense'" in result.err


def test_an_invalid_setting_is_reported_in_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA__PORT", "x")
    result = run("status")
    assert result.code == 2
    assert result.err.startswith("penstock: PENSTOCK_KAFKA__PORT is 'x': ")
    assert result.err.count("\n") == 1


def test_an_unknown_variable_is_a_warning(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STREEMS", "a")
    result = run("table", "list")
    assert result.code == 0
    assert "PENSTOCK_STREEMS sets nothing. Did you mean PENSTOCK_STREAMS?" in result.err


SHELLS = [("bash", "complete -o"), ("zsh", "#compdef penstock"), ("fish", "complete")]


@pytest.mark.parametrize(("shell", "marker"), SHELLS)
def test_completion_scripts_are_printed(shell: str, marker: str, run) -> None:
    result = run("completion", shell)
    assert result.code == 0
    assert marker in result.out


def test_words_are_completed(home: Path) -> None:
    script = Path(sys.executable).with_name("penstock")
    environment = {"COMP_WORDS": "penstock st", "COMP_CWORD": "1", "_PENSTOCK_COMPLETE": "bash_complete"}
    process = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert process.stdout.split() == ["plain,state", "plain,statistics", "plain,status", "plain,stream"]


def test_an_unknown_source_is_a_usage_error(run) -> None:
    result = run("ingest", "nonsense")
    assert result.code == 2
    assert "there is no source 'nonsense'; `penstock ingest --help` lists all" in result.err


def test_a_topic_without_a_contract_is_a_usage_error(run) -> None:
    result = run("ingest", "csv", "--path", "x.csv", "--topic", "readings")
    assert result.code == 2
    assert "there is no contract 'readings'" in result.err


def test_a_stream_without_its_pipeline_can_only_be_drained_or_stopped(run, home: Path) -> None:
    with closing(open_control_store(f"sqlite:///{home}/control.db")) as store:
        store.set_desired_state("gone", DesiredRunState.RUNNING, 0)
        assert run("stream", "start", "gone").code == 2
        assert run("stream", "drain", "nonsense").code == 2
        result = run("stream", "drain", "gone")
        assert (result.code, store.read_desired_states()["gone"].desired) == (0, DesiredRunState.DRAINED), (
            result.err
        )
        assert run("stream", "stop", "gone", "--wait", "0").code == 0


@pytest.mark.parametrize(
    "name", ["../elsewhere", "/x", "journal", "state", "current", "plan.json", ".x", "a b"]
)
@pytest.mark.parametrize("path", [("stream", "replay"), ("run",)])
def test_an_invalid_name_of_a_run_is_refused(run, path: tuple[str, ...], name: str) -> None:
    result = run(*path, "sensor_minute", "--name", name)
    assert result.code == 2
    assert result.err.startswith(f"penstock: {name!r} is not a valid name for a run or a replay. ")


def test_a_replay_cannot_use_the_name_of_a_run(run, home: Path) -> None:
    write_deltalake(home / "warehouse/runs/sensor_minute/mine/latest/sensor_minute", pa.table({"x": [1]}))
    (home / "runs/sensor_minute/mine").mkdir(parents=True)
    result = run("stream", "replay", "sensor_minute", "--name", "mine")
    assert result.code == 2
    assert "runs/sensor_minute/mine already has results of another run" in result.err


def test_the_state_of_an_unknown_stream_is_a_usage_error(run, home: Path) -> None:
    assert "there is no stream 'nonsense'" in run("state", "list", "nonsense").err
    assert (run("state", "list", "nonsense").code, run("state", "list", "sensor_minute").code) == (2, 1)


def test_a_negative_wait_is_a_usage_error(run, home: Path) -> None:
    result = run("stream", "drain", "sensor_minute", "--wait", "-5")
    assert result.code == 2
    assert "-5.0 is not in the range x>=0" in result.err


def list_groups(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """List the paths of the groups of commands, with the root."""
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command)
    members = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [
        path,
        *(inner for name, member in members if member for inner in list_groups(member, (*path, name))),
    ]


def index_of_example(lines: list[str]) -> int:
    return next(index for index, line in enumerate(lines) if line.startswith("  Example:"))


@pytest.mark.parametrize("path", list_groups(penstock), ids=lambda path: " ".join(path) or "penstock")
def test_summaries_of_commands_fit_into_80_columns(
    run, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*path, "--help")
    assert result.code == 0
    lines = [line.rstrip() for line in result.out.splitlines()]
    assert not [line for line in lines[1:] if line.endswith(("...", "…"))]
    # Commands are listed after the options, below "Commands:" or the names of sections.
    after_options = lines[lines.index("", lines.index("Options:")) + 1 :]
    rows = [line for line in after_options[: index_of_example(after_options)] if line.startswith(" ")]
    assert rows
    assert all(not row.startswith("   ") for row in rows), "a summary takes two lines"
    assert "Example:" in result.out


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_has_a_short_help(path: tuple[str, ...], command: click.Command) -> None:
    assert command.short_help, f"{' '.join(path)} has none"
    assert not command.short_help.endswith((".", "…", "..."))


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        (("stream", "start", "sensor_minut"), "sensor_minute"),
        (("explain", "sensor_minut"), "sensor_minute"),
        (("run", "sensor_minut"), "sensor_minute"),
        (("audit", "sensor_minut"), "sensor_minute"),
        (("state", "show", "sensor_minut"), "sensor_minute"),
        (("stream", "replay", "sensor_minut"), "sensor_minute"),
        (("stream", "upgrade", "sensor_minut"), "sensor_minute"),
        (("quarantine", "list", "sensor"), "sensors"),
        (("check", "latest/sensor_minut"), "latest/sensor_minute"),
        (("statistics", "latest/sensor_minut"), "latest/sensor_minute"),
        (("demo", "word_cont"), "word_count"),
        (("ingest", "sensor"), "sensors"),
        (("env", "plan", "locl"), "local"),
        (("topics", "plan", "--environment", "productoin"), "production"),
    ],
)
def test_an_unknown_name_is_a_usage_error_with_a_suggestion(
    run, path: tuple[str, ...], suggestion: str
) -> None:
    result = run(*path)
    assert result.code == 2
    assert f"Did you mean '{suggestion}'?" in result.err


def test_a_file_that_does_not_exist_is_refused_before_spark_starts(
    run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = run("run", "sensor_minute", "--from", "json:readings.jsonl")
    stored = home / "warehouse" / "readings.jsonl"
    problem = (
        f"--from 'json:readings.jsonl': {stored} does not exist; a relative path starts at the warehouse"
    )
    assert (missing.code, missing.err.strip()) == (2, f"penstock: {problem}")
    (tmp_path / "readings.jsonl").touch()
    nearby = run("run", "sensor_minute", "--from", "json:readings.jsonl")
    assert nearby.err.strip() == f"penstock: {problem}. Did you mean json:{tmp_path / 'readings.jsonl'}?"
