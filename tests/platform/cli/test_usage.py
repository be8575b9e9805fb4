"""Help, completion, exit codes, and what wrong use is told."""

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


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    names = command.list_commands(context)
    found = [(name, command.get_command(context, name)) for name in names]
    return [leaf for name, sub in found if sub for leaf in leaves(sub, (*path, name))]


LEAVES = leaves(penstock)


def understands(command: click.Command, arguments: list[str]) -> None:
    """Fail unless the command takes these arguments; files that an example names need not be there."""
    try:
        command.make_context("penstock", arguments)
    except click.BadParameter as problem:
        if "does not exist" not in problem.message:
            raise


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[" ".join(words) for words, _ in LEAVES])
def test_every_command_explains_itself_and_gives_an_example_that_it_understands(
    words: tuple[str, ...], command: click.Command
) -> None:
    assert command.help
    assert command.epilog, "no example"
    lines = [line.removeprefix("Example:").strip() for line in command.epilog.splitlines()[1:]]
    called = [line[line.index("penstock ") :].split(">")[0].split()[1:] for line in lines]
    for arguments in called:
        assert tuple(arguments[: len(words)]) == words
        understands(command, arguments[len(words) :])


def test_every_command_that_lists_takes_json() -> None:
    listing = {("status",), ("doctor",), ("topics", "plan"), ("table", "list"), ("table", "show")}
    listing |= {("producer", "list"), ("producer", "where"), ("env", "list")}
    have = {words for words, command in LEAVES if any("--json" in one.opts for one in command.params)}
    assert listing <= have


def test_help_of_the_whole_names_every_command(run) -> None:
    answer = run("--help")
    assert answer.code == 0
    for name in penstock.list_commands(click.Context(penstock)):
        assert f"\n  {name} " in answer.out


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom penstock.platform.cli.main import penstock\n"
        "penstock.main(['--help'], standalone_mode=False)\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_command_that_is_not_there_is_wrong_usage(run) -> None:
    answer = run("nonsense")
    assert answer.code == 2
    assert "No such command 'nonsense'" in answer.err


def test_a_setting_that_cannot_be_used_is_told_in_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA__PORT", "x")
    answer = run("status")
    assert answer.code == 2
    assert answer.err.startswith("penstock: PENSTOCK_KAFKA__PORT is 'x': ")
    assert answer.err.count("\n") == 1


def test_a_variable_that_sets_nothing_is_told_and_the_command_goes_on(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_STREEMS", "a")
    answer = run("table", "list")
    assert answer.code == 0
    assert "PENSTOCK_STREEMS sets nothing (did you mean PENSTOCK_STREAMS" in answer.err


SHELLS = [("bash", "complete -o"), ("zsh", "#compdef penstock"), ("fish", "complete")]


@pytest.mark.parametrize(("shell", "mark"), SHELLS)
def test_shells_are_told_how_to_complete(shell: str, mark: str, run) -> None:
    answer = run("completion", shell)
    assert answer.code == 0
    assert mark in answer.out


def test_words_are_completed(home: Path) -> None:
    script = Path(sys.executable).with_name("penstock")
    words = {"COMP_WORDS": "penstock st", "COMP_CWORD": "1", "_PENSTOCK_COMPLETE": "bash_complete"}
    done = subprocess.run([script], env=words, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["plain,status", "plain,stream", "plain,state", "plain,statistics"]


def test_a_source_that_is_not_there_is_wrong_usage(run) -> None:
    answer = run("ingest", "nonsense")
    assert answer.code == 2
    assert "there is no source 'nonsense'; `penstock ingest --help` lists all" in answer.err


def test_a_topic_without_a_contract_is_wrong_configuration(run) -> None:
    answer = run("ingest", "csv", "--path", "x.csv", "--topic", "readings")
    assert answer.code == 2
    assert "there is no contract 'readings'" in answer.err


def test_a_stream_whose_pipeline_is_gone_can_be_put_to_rest_and_nothing_else(run, home: Path) -> None:
    with closing(open_control_store(f"sqlite:///{home}/control.db")) as store:
        store.set_desired_state("gone", DesiredRunState.RUNNING, 0)
        assert run("stream", "start", "gone").code == 2
        assert run("stream", "drain", "nonsense").code == 2
        answer = run("stream", "drain", "gone")
        assert (answer.code, store.read_desired_states()["gone"].desired) == (0, DesiredRunState.DRAINED), (
            answer.err
        )
        assert run("stream", "stop", "gone", "--wait", "0").code == 0


@pytest.mark.parametrize(
    "name", ["../elsewhere", "/x", "journal", "state", "current", "plan.json", ".x", "a b"]
)
@pytest.mark.parametrize("words", [("stream", "replay"), ("run",)])
def test_what_no_folder_may_be_called_no_run_and_no_replay_is(run, words: tuple[str, ...], name: str) -> None:
    answer = run(*words, "sensor_minute", "--name", name)
    assert answer.code == 2
    assert answer.err.startswith(f"penstock: {name!r} is not a valid name for a run or a replay. ")


def test_a_replay_is_not_called_what_has_results_of_another_run(run, home: Path) -> None:
    write_deltalake(home / "warehouse/runs/sensor_minute/mine/latest/sensor_minute", pa.table({"x": [1]}))
    (home / "runs/sensor_minute/mine").mkdir(parents=True)
    answer = run("stream", "replay", "sensor_minute", "--name", "mine")
    assert answer.code == 2
    assert "runs/sensor_minute/mine already has results of another run" in answer.err


def test_a_state_of_a_stream_that_there_is_not_is_wrong_usage(run, home: Path) -> None:
    assert "there is no stream 'nonsense'" in run("state", "list", "nonsense").err
    assert (run("state", "list", "nonsense").code, run("state", "list", "sensor_minute").code) == (2, 1)


def test_seconds_before_now_are_not_waited(run, home: Path) -> None:
    answer = run("stream", "drain", "sensor_minute", "--wait", "-5")
    assert answer.code == 2
    assert "-5.0 is not in the range x>=0" in answer.err


def groups(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words that call each group of commands, the whole included."""
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command)
    members = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [path, *(inner for name, member in members if member for inner in groups(member, (*path, name)))]


@pytest.mark.parametrize("words", groups(penstock), ids=lambda words: " ".join(words) or "penstock")
def test_no_summary_of_a_command_is_cut_off_at_80_columns(
    run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = run(*words, "--help")
    assert answer.code == 0
    lines = [line.rstrip() for line in answer.out.splitlines()]
    commands = lines[lines.index("Commands:") + 1 :]
    assert not [line for line in lines[1:] if line.endswith(("...", "…"))]
    rows = commands[: commands.index("") if "" in commands else len(commands)]
    assert all(not row.startswith("   ") for row in rows), "a summary takes two lines"
    assert "Example:" in answer.out


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[" ".join(words) for words, _ in LEAVES])
def test_every_command_has_a_short_help(words: tuple[str, ...], command: click.Command) -> None:
    assert command.short_help, f"{' '.join(words)} has none"
    assert not command.short_help.endswith((".", "…", "..."))


@pytest.mark.parametrize(
    ("words", "suggestion"),
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
def test_an_unknown_name_is_wrong_usage_and_the_nearest_one_is_offered(
    run, words: tuple[str, ...], suggestion: str
) -> None:
    answer = run(*words)
    assert answer.code == 2
    assert f"Did you mean '{suggestion}'?" in answer.err
