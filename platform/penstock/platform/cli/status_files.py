"""What `penstock status` says of the files behind streams: the invalid ones."""

from collections.abc import Mapping

from penstock.platform.cli.text_table import shorten


def find_invalid_files() -> Mapping[str, str]:
    """Return the problem of each pipeline whose file is invalid, by name."""
    from penstock.platform.services.stream_catalog import find_invalid_pipelines

    return {name: str(error) for name, error in find_invalid_pipelines().items()}


def render_invalid_files(width: int | None) -> list[str]:
    """Return a line for each invalid file; nothing if all are valid."""
    problems = find_invalid_files()
    if not problems:
        return []
    lines = [line for problem in problems.values() for line in problem.splitlines()]
    return [
        "",
        "invalid files (the other files are not affected):",
        *(shorten(line, width) for line in lines),
    ]
