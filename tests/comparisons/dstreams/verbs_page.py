"""Reads the page of DStream operations: the code of each, and the operations that it names."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PAGE_FILE = Path(__file__).parents[3] / "pipelines" / "docs" / "dstreams.md"
TABLE_ROW_PATTERN = re.compile(r"^\| (`.*?) \|", re.MULTILINE)


@cache
def read_page() -> str:
    """Return the text of the page."""
    return PAGE_FILE.read_text("utf-8")


def read_verbs() -> Mapping[str, tuple[str, str]]:
    """Return the code of each operation in Spark and in Penstock, by heading."""
    sections = re.split(r"^## ", read_page(), flags=re.MULTILINE)[1:]
    code_matches = {
        section.partition("\n")[0]: re.search(r"```python\n(theirs = .*?)```", section, re.DOTALL)
        for section in sections
    }
    codes = {
        name: code.group(1).partition("\nours") for name, code in code_matches.items() if code is not None
    }
    return {name: (dstream_code, f"ours{our_code}") for name, (dstream_code, _, our_code) in codes.items()}


def list_named_verbs() -> set[str]:
    """Return every operation that has a section or a row of the table."""
    headings = re.findall(r"^## ([a-z]\w*)", read_page(), re.MULTILINE)
    return {
        *headings,
        *(verb for row in TABLE_ROW_PATTERN.findall(read_page()) for verb in re.findall(r"`(\w+)", row)),
    }
