"""What the page of DStream verbs says: the code of each verb, and which verbs it names."""

import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[3] / "pipelines" / "docs" / "dstreams.md"
TEXT = PAGE.read_text("utf-8")
ROW = re.compile(r"^\| (`.*?) \|", re.MULTILINE)


def verbs() -> Mapping[str, tuple[str, str]]:
    """The code of each verb that computes, there and here, by its heading."""
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    found = {
        part.partition("\n")[0]: re.search(r"```python\n(theirs = .*?)```", part, re.DOTALL)
        for part in sections
    }
    codes = {name: code.group(1).partition("\nours") for name, code in found.items() if code is not None}
    return {name: (there, f"ours{here}") for name, (there, _, here) in codes.items()}


def named() -> set[str]:
    """Every verb that has a section, or stands in the first column of the table."""
    headings = re.findall(r"^## ([a-z]\w*)", TEXT, re.MULTILINE)
    return {*headings, *(verb for row in ROW.findall(TEXT) for verb in re.findall(r"`(\w+)", row))}
