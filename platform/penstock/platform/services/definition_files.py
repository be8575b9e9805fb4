"""What a stream is written in: the files that decide what it does, and when they were changed.

Nothing of what stands in them is run or checked: that is asked every half second of failed streams, and by
`penstock status`.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.engine.user_modules import find_user_modules


def definition_fingerprint(stream: str) -> str:
    """A word that is another one after any change of a file that may matter to whether the stream can run."""
    return " ".join(
        f"{path}@{mtime_ns}:{size}" for path, mtime_ns, size in _stat_files(_list_definition_files(stream))
    )


def find_changed_file(stream: str, since_ms: int) -> Path | None:
    """A file that was changed after a moment; None for none.

    Files of the pipeline, of one's own that it imports, and contracts and suites of topics that these name.
    """
    user_files = list(find_user_modules(stream).values())
    for path, mtime_ns, _ in _stat_files([*user_files, *_list_topic_files()]):
        if mtime_ns > since_ms * 1_000_000 and (
            path in user_files or any(_mentions_topic(file, path.stem) for file in user_files)
        ):
            return path
    return None


def _list_topic_files() -> Iterator[Path]:
    """Every contract, and every suite of a topic."""
    from penstock.ingestion.contracts import CATALOG_FOLDER
    from penstock.quality.expectations.suite import SUITES_FOLDER, TOPICS_FOLDER

    yield from CATALOG_FOLDER.glob("*.yaml")
    yield from (SUITES_FOLDER / TOPICS_FOLDER).glob("*.yaml")


def _mentions_topic(file: Path, topic: str) -> bool:
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


def _list_definition_files(stream: str) -> Iterator[Path]:
    """The pipeline's own files, and every contract and suite: which of them it needs, a broken file cannot tell."""
    from penstock.ingestion.contracts import CATALOG_FOLDER
    from penstock.quality.expectations.suite import SUITES_FOLDER

    yield from find_user_modules(stream).values()
    yield from CATALOG_FOLDER.glob("*.yaml")
    yield from SUITES_FOLDER.glob("*/*.yaml")


def _stat_files(files: Iterable[Path]) -> Iterator[tuple[Path, int, int]]:
    for path in sorted(files):
        try:
            file_stat = path.stat()
        except FileNotFoundError:
            continue
        yield path, file_stat.st_mtime_ns, file_stat.st_size
