"""Links, paths, modules, commands and options that documents name exist."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from penstock.platform.cli.main import penstock

ROOT = Path(__file__).parents[1]
FOLDERS = ("ingestion", "pipelines", "quality", "infra", "platform", "tests", "docker")
DOCUMENTS = sorted(
    file.relative_to(ROOT)
    for files in (ROOT.glob("*.md"), *((ROOT / folder).rglob("*.md") for folder in FOLDERS))
    for file in files
)
USER_CREATED_FILES = {"pipelines/penstock/pipelines/catalog/site_minute.yaml", "docker/certificates/rds.pem"}
"""Files that a document asks for."""
MARKDOWN_LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```|`([^`\n]+)`", re.DOTALL | re.MULTILINE)
PYTHON_MODULE = re.compile(r"\bpython -m ([\w.]+)")
MAKE_TARGET = re.compile(r"^make ([a-z-]+)", re.MULTILINE)
PENSTOCK_COMMAND = re.compile(r"^(?:\S*/)?penstock ((?!\.)[a-z].*)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"[<>{}$…*]|\b[A-Z]{3,}\b|/NAME")


def extract_code(document: Path) -> Iterator[str]:
    for block, inline in CODE_BLOCK.findall((ROOT / document).read_text("utf-8")):
        yield block or inline


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_link_has_a_target(document: Path) -> None:
    links = MARKDOWN_LINK.findall(
        re.sub(r"```.*?```", "", (ROOT / document).read_text("utf-8"), flags=re.DOTALL)
    )
    paths = [link.partition("#")[0] for link in links if "://" not in link]
    assert not [path for path in paths if not (ROOT / document.parent / path).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_path_exists(document: Path) -> None:
    paths = [
        code for code in extract_code(document) if re.fullmatch(rf"(?:{'|'.join(FOLDERS)})/[\w./-]+", code)
    ]
    assert not [path for path in paths if not (ROOT / path).exists() and path not in USER_CREATED_FILES]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_module_and_make_target_exists(document: Path) -> None:
    for code in extract_code(document):
        assert not [name for name in PYTHON_MODULE.findall(code) if find_spec(name.rstrip(".")) is None]
        makefile = (ROOT / "Makefile").read_text("utf-8")
        assert not [
            name for name in MAKE_TARGET.findall(code) if not re.search(rf"^{name}:", makefile, re.MULTILINE)
        ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_command_exists(document: Path) -> None:
    for code in extract_code(document):
        for call in PENSTOCK_COMMAND.findall(code):
            if not PLACEHOLDER.search(call.partition("#")[0]):
                check_command_exists(call)


def check_command_exists(call: str) -> None:
    """Check that a call names an existing command and its options."""
    arguments = iter(shlex.split(call, comments=True))
    command: click.Command = penstock
    context = click.Context(command)
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        subcommand = command.get_command(context, word)
        assert subcommand is not None, f"{call}: there is no {word!r}"
        command = subcommand
    options = {
        name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)
    } | {"--help"}
    assert not [
        word for word in shlex.split(call, comments=True) if word[:2] == "--" and word not in options
    ], call
