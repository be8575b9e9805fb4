"""The files that define a stream, and their modification times.

The files are neither executed nor validated: hosts poll them twice a second for failed streams, and `penstock
status` reads them as well.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.engine.user_modules import find_user_modules


def definition_fingerprint(stream: str) -> str:
    """Return a text that changes with any file that may affect whether the stream can run."""
    return " ".join(
        f"{path}@{mtime_ns}:{size}" for path, mtime_ns, size in _stat_files(_list_definition_files(stream))
    )


def fingerprint_definition_folders() -> str:
    """Return a text that changes with any file of a pipeline, contract or suite; not with modules elsewhere."""
    from penstock.engine.user_modules import CATALOG_FOLDER as PIPELINES_FOLDER
    from penstock.engine.user_modules import DEFINITION_SUFFIXES
    from penstock.ingestion.contracts import CATALOG_FOLDER
    from penstock.quality.expectations.suite import SUITES_FOLDER

    files = [file for suffix in DEFINITION_SUFFIXES for file in PIPELINES_FOLDER.glob(f"*{suffix}")]
    files += [*CATALOG_FOLDER.glob("*.yaml"), *SUITES_FOLDER.glob("*/*.yaml")]
    parts = "\n".join(f"{path}@{mtime_ns}:{size}" for path, mtime_ns, size in _stat_files(files))
    return hashlib.sha256(parts.encode()).hexdigest()


def find_changed_file(stream: str, since_ms: int) -> Path | None:
    """Return a definition file that changed after a time, None if there is none.

    Considers the pipeline's file, the user modules that it imports, and the contracts and suites of topics that
    these files mention.
    """
    user_files = list(find_user_modules(stream).values())
    for path, mtime_ns, _ in _stat_files([*user_files, *_list_topic_files()]):
        if mtime_ns > since_ms * 1_000_000 and (
            path in user_files or any(_mentions_topic(file, path.stem) for file in user_files)
        ):
            return path
    return None


def _list_topic_files() -> Iterator[Path]:
    """Yield every contract and every suite of a topic."""
    from penstock.ingestion.contracts import CATALOG_FOLDER
    from penstock.quality.expectations.suite import SUITES_FOLDER, TOPICS_FOLDER

    yield from CATALOG_FOLDER.glob("*.yaml")
    yield from (SUITES_FOLDER / TOPICS_FOLDER).glob("*.yaml")


def _mentions_topic(file: Path, topic: str) -> bool:
    """Whether a file contains the topic's name as a string literal; how the file uses it is not checked."""
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
    """Yield the pipeline's modules and every contract and suite, since an invalid file may hide what it uses."""
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
