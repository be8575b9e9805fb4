"""What `penstock status` says of the files behind streams: invalid ones, and those that were removed."""

from collections.abc import Mapping

from penstock.platform.cli.text_table import shorten


def find_invalid_files() -> Mapping[str, str]:
    """Return the problem of each pipeline whose file is invalid, by name."""
    from penstock.platform.services.stream_catalog import find_invalid_pipelines

    return {name: str(error) for name, error in find_invalid_pipelines().items()}


def describe_removed_file(stream: str) -> str:
    """Return a note for a stream without a file; empty if it has one."""
    from penstock.platform.services.stream_catalog import list_stream_names

    if stream in list_stream_names():
        return ""
    return f"file removed. Restore it, or remove the stream: `penstock stream drop {stream}`"


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
