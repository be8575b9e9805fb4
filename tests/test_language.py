"""The words that GLOSSARY.md replaces are in no name, message and page."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE_FOLDERS = ("infra", "ingestion", "pipelines", "quality", "platform")
SOURCES = sorted(file for folder in SOURCE_FOLDERS for file in (ROOT / folder / "penstock").rglob("*.py"))
DOCUMENTS = sorted(
    ROOT / line
    for line in subprocess.run(
        ["git", "ls-files", "*.md", "*.yaml", "*.yml"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    if not line.startswith("tests/")
)
MAX_SUBJECT_LENGTH = 72
RULE_SINCE = "Rename everything to the words of the field"
"""The commit from which on subjects have a limit."""

# fmt: off
BANNED_NAMES = frozenset({
    "told", "said", "found", "held", "given", "came", "made", "known", "ours", "others", "whoever", "nobody", "who",
    "whose", "began", "begun", "kept", "taken", "looked", "settled", "lifted", "sifted", "placed", "marked",
    "united",
    "guarded", "heard", "hears", "mended", "parked",
})
# fmt: on
"""What no function, class or parameter of a public signature is called: a bare participle or pronoun."""

BANNED_WORDS = re.compile(
    r"(?:^|_)(?:told|whoever|nobody|sift(?:ed)?|tenant|mend(?:ed)?|at_once|patience)(?:_|$)"
)
"""What no identifier contains, written in snake case."""

BANNED_PHRASES = re.compile(
    r"\b(?:in vain|no good|set(?:s|ting)? aside|one's own|whoever|nobody|goes on with|(?:is|are|was|were) told|"
    r"mend(?:s|ed|ing)?|begun|given up|parked|taken back|takes? back|from around|"
    r"who(?:ever)? asks|comes to nothing|put away|looks? upon)\b",
    re.IGNORECASE,
)
"""What no message, docstring or page says; the glossary and the style guide have the words to use instead."""


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def locate(file: Path, line: int) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def iter_definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of functions and classes, and of their parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def iter_texts(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def test_no_function_class_or_parameter_is_a_bare_participle_or_pronoun() -> None:
    violations = [
        f"{locate(file, line)} {name}"
        for file in SOURCES
        for name, line in iter_definitions(parse(file))
        if snake_case(name) in BANNED_NAMES or BANNED_WORDS.search(snake_case(name))
    ]
    assert not violations, "\n".join(violations)


def test_no_text_in_the_source_uses_a_word_that_the_glossary_replaces() -> None:
    violations = [
        f"{locate(file, line)} {match.group(0)!r}"
        for file in SOURCES
        for text, line in iter_texts(parse(file))
        if (match := BANNED_PHRASES.search(text))
    ]
    assert not violations, "\n".join(violations)


def test_no_page_uses_a_word_that_the_glossary_replaces() -> None:
    violations = [
        f"{locate(file, number)} {match.group(0)!r}"
        for file in DOCUMENTS
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if (match := BANNED_PHRASES.search(line))
    ]
    assert not violations, "\n".join(violations)


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for file in SOURCES:
        for node in parse(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(locate(file, node.lineno))
    shared = {name: locations for name, locations in places.items() if len(locations) > 1}
    assert not shared


def test_subjects_of_commits_have_at_most_72_characters() -> None:
    log = subprocess.run(["git", "log", "--format=%s"], cwd=ROOT, capture_output=True, text=True, check=False)
    subjects = log.stdout.splitlines()
    if RULE_SINCE not in subjects:
        pytest.skip("the history of this checkout does not reach back to the rule")
    since = subjects[: subjects.index(RULE_SINCE)]
    assert not [subject for subject in since if len(subject) > MAX_SUBJECT_LENGTH]
