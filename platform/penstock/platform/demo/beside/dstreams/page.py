"""What the page of DStream verbs says: the code of each verb, and which verbs it names."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from penstock.platform.errors import DemoError

PAGE = Path("pipelines/docs/dstreams.md")
CHECKOUT = Path(__file__).parents[6]
ROW = re.compile(r"^\| (`.*?) \|", re.MULTILINE)


@cache
def text() -> str:
    """Return the page. DemoError where there is no checkout."""
    page = CHECKOUT / PAGE
    if not page.exists():
        raise DemoError(f"there is no page of verbs at {page}: run this in a checkout, not from an image")
    return page.read_text("utf-8")


def verbs() -> Mapping[str, tuple[str, str]]:
    """Return the code of each verb that computes, there and here, by its heading."""
    sections = re.split(r"^## ", text(), flags=re.MULTILINE)[1:]
    found = {
        part.partition("\n")[0]: re.search(r"```python\n(theirs = .*?)```", part, re.DOTALL)
        for part in sections
    }
    codes = {name: code.group(1).partition("\nours") for name, code in found.items() if code is not None}
    return {name: (there, f"ours{here}") for name, (there, _, here) in codes.items()}


def named() -> set[str]:
    """Return every verb that has a section, or stands in the first column of the table."""
    headings = re.findall(r"^## ([a-z]\w*)", text(), re.MULTILINE)
    return {*headings, *(verb for row in ROW.findall(text()) for verb in re.findall(r"`(\w+)", row))}
