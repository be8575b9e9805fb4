"""Every command ends with exit code 2 for a name that does not exist, and does nothing else.

The commands are read from the command line itself, so that a new command cannot be forgotten: a new argument that
takes a name needs an entry here, or the test fails.
"""

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import click
import pytest
import yaml

from penstock.platform.cli.main import main, penstock

UNKNOWN = "nonsense_xyz"
NAME_ARGUMENTS = {
    "stream",
    "streams",
    "tables",
    "table",
    "topic",
    "name",
    "names",
    "source",
    "programs",
    "shell",
    "kind",
}
"""Arguments of commands that take a name of something."""
OTHER_ARGUMENTS = {
    "sequence",
    "positions",
    "position",
    "plan_id",
    "lock_id",
    "file",
    "files",
    "statement",
    "partition",
    "offset",
}
"""Arguments that are no names: numbers, positions, ids, paths and SQL."""
REQUIRED_VALUES = {
    "partition": "0",
    "offset": "1",
    "sequence": "1",
    "positions": "0:1",
    "position": "0:1",
    "plan_id": "p",
    "lock_id": "l",
}
REQUIRED_OPTIONS = {
    ("state", "erase"): ["--key", "device=d1"],
    ("state", "export"): ["--to", "state.csv"],
    ("quarantine", "discard"): ["--why", "test"],
}
NEEDS_BROKER = {("topics", "list"), ("topics", "delete"), ("consume",)}
"""Only the broker knows which topics there are; tests with a broker cover them."""


def iter_commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        subcommand = command.get_command(context, name)
        assert subcommand is not None
        yield from iter_commands(subcommand, (*path, name))


def list_arguments(command: click.Command) -> list[click.Argument]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Argument)]


def fill_required_options(command: click.Command) -> list[str]:
    options = [option for option in command.params if isinstance(option, click.Option) and option.required]
    return [text for option in options for text in (option.opts[0], UNKNOWN)]


COMMANDS = list(iter_commands(penstock))
CASES = {
    " ".join(path): [
        *path,
        *(
            UNKNOWN if argument.name in NAME_ARGUMENTS else REQUIRED_VALUES[str(argument.name)]
            for argument in list_arguments(command)
        ),
        *REQUIRED_OPTIONS.get(path, fill_required_options(command)),
    ]
    for path, command in COMMANDS
    if path not in NEEDS_BROKER
    and any(argument.name in NAME_ARGUMENTS for argument in list_arguments(command))
}
OPTION_CASES = [
    ["ingest", "csv", "--path", "x.csv", "--topic", UNKNOWN],
    ["topics", "plan", "--environment", UNKNOWN],
    ["topics", "apply", "--environment", UNKNOWN],
    ["table", "show", "sensor_minute", "--kind", UNKNOWN],
    ["run", "sensor_minute", "--from", f"{UNKNOWN}:readings"],
    ["stream", "plan-upgrade", "sensor_minute", "--from-now", UNKNOWN],
    ["stream", "upgrade", "sensor_minute", "--from-now", UNKNOWN],
    ["quarantine", "list", "sensors", "--state", UNKNOWN],
    ["status", f"--{UNKNOWN}"],
    [UNKNOWN],
    ["stream", UNKNOWN],
]


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it printed to stderr."""
    printed = StringIO()
    monkeypatch.setattr("sys.argv", ["penstock", *arguments])
    with redirect_stderr(printed), redirect_stdout(StringIO()), pytest.raises(SystemExit) as exited:
        main()
    return int(exited.value.code or 0), printed.getvalue()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_each_argument_is_a_name_or_listed_as_something_else() -> None:
    arguments = {str(argument.name) for _, command in COMMANDS for argument in list_arguments(command)}
    assert arguments <= NAME_ARGUMENTS | OTHER_ARGUMENTS


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES.keys())
def test_an_unknown_name_ends_with_exit_code_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, message = run(arguments, monkeypatch)
    assert code == 2, message
    assert f"'{UNKNOWN}'" in message


@pytest.mark.parametrize("arguments", OPTION_CASES, ids=" ".join)
def test_an_unknown_name_in_an_option_ends_with_exit_code_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, message = run(arguments, monkeypatch)
    assert code == 2, message
    assert UNKNOWN in message


MISSPELT = yaml.safe_load((Path(__file__).parent / "command_line_mistakes.yaml").read_text("utf-8"))


@pytest.mark.parametrize("mistake", MISSPELT, ids=[mistake["command"] for mistake in MISSPELT])
def test_a_misspelt_name_gets_the_nearest_one(
    mistake: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, printed = run(mistake["command"].split(), monkeypatch)
    assert code == 2
    assert printed.splitlines()[-1].startswith(mistake["message"])
