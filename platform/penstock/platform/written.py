"""What a stream is written in: the files that decide what it does, and when they were changed.

Nothing of what stands in them is run or checked: that is asked every half second of streams that are parked, and by
`penstock status`.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.pipelines.own_modules import own_modules


def written_state(stream: str) -> str:
    """A word that is another one after any change of a file that may matter to whether the stream can run."""
    return " ".join(f"{path}@{changed}:{size}" for path, changed, size in _seen(_all_files(stream)))


def changed_since(stream: str, at_ms: int) -> Path | None:
    """A file that was changed after a moment; None for none.

    Files of the pipeline, of one's own that it imports, and contracts and suites of topics that these name.
    """
    own = list(own_modules(stream).values())
    for path, changed, _ in _seen([*own, *_of_topics()]):
        if changed > at_ms * 1_000_000 and (path in own or any(_names(file, path.stem) for file in own)):
            return path
    return None


def _of_topics() -> Iterator[Path]:
    """Every contract, and every suite of a topic."""
    from penstock.ingestion.contracts import CATALOG
    from penstock.quality.expectations.suite import FOLDER, TOPICS

    yield from CATALOG.glob("*.yaml")
    yield from (FOLDER / TOPICS).glob("*.yaml")


def _names(file: Path, topic: str) -> bool:
    """Whether a file has a topic's name as a text of its own: what it does with it is not looked into."""
    try:
        text = file.read_text("utf-8")
        if file.suffix != ".py":
            return re.search(rf"(?<![\w-]){re.escape(topic)}(?![\w-])", text) is not None
        return any(
            isinstance(node, ast.Constant) and node.value == topic for node in ast.walk(ast.parse(text))
        )
    except (OSError, ValueError, SyntaxError):
        return True


def _all_files(stream: str) -> Iterator[Path]:
    """The pipeline's own files, and every contract and suite: which of them it needs, a broken file cannot tell."""
    from penstock.ingestion.contracts import CATALOG
    from penstock.quality.expectations.suite import FOLDER

    yield from own_modules(stream).values()
    yield from CATALOG.glob("*.yaml")
    yield from FOLDER.glob("*/*.yaml")


def _seen(files: Iterable[Path]) -> Iterator[tuple[Path, int, int]]:
    for path in sorted(files):
        try:
            found = path.stat()
        except FileNotFoundError:
            continue
        yield path, found.st_mtime_ns, found.st_size
