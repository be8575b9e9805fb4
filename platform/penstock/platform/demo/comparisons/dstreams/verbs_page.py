"""What the page of DStream verbs says: the code of each verb, and which verbs it names."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from penstock.platform.errors import DemoError

PAGE_PATH = Path("pipelines/docs/dstreams.md")
CHECKOUT_ROOT = Path(__file__).parents[6]
TABLE_ROW_PATTERN = re.compile(r"^\| (`.*?) \|", re.MULTILINE)


@cache
def read_page() -> str:
    """Return the page. DemoError where there is no checkout."""
    page_file = CHECKOUT_ROOT / PAGE_PATH
    if not page_file.exists():
        raise DemoError(
            f"there is no page of verbs at {page_file}: run this in a checkout, not from an image"
        )
    return page_file.read_text("utf-8")


def read_verbs() -> Mapping[str, tuple[str, str]]:
    """Return the code of each verb that computes, there and here, by its heading."""
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
    """Return every verb that has a section, or stands in the first column of the table."""
    headings = re.findall(r"^## ([a-z]\w*)", read_page(), re.MULTILINE)
    return {
        *headings,
        *(verb for row in TABLE_ROW_PATTERN.findall(read_page()) for verb in re.findall(r"`(\w+)", row)),
    }
