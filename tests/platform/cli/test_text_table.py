"""Tables of text fit into a width."""

import pytest

from penstock.platform.cli.text_table import TableColumn, render_table, shorten

COLUMNS = (
    TableColumn("stream"),
    TableColumn("records", is_number=True),
    TableColumn("batch", is_number=True, rank=2),
    TableColumn("age", rank=1),
    TableColumn("note"),
)
ROWS = [("minute", "1,204", "7", "2 min", ""), ("hour", "9", "1234", "9 h", "a note of some length")]


def render(width: int | None) -> list[str]:
    return [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in render_table(COLUMNS, ROWS, width)]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (
            None,
            [
                "stream  records  batch  age    note",
                "minute    1,204      7  2 min",
                "hour          9   1234  9 h    a note of some length",
            ],
        ),
        (
            46,
            [
                "stream  records  age    note",
                "minute    1,204  2 min",
                "hour          9  9 h    a note of some length",
            ],
        ),
        (30, ["stream  records  note", "minute    1,204", "hour          9  a note of so…"]),
    ],
)
def test_columns_are_left_out_by_rank_before_anything_is_cut(width: int | None, expected: list[str]) -> None:
    assert render(width) == expected


def test_a_table_without_rows_has_its_header() -> None:
    assert render_table(COLUMNS[:1], [], 80)[0].endswith("stream\x1b[0m")


def test_only_the_first_line_of_a_text_is_shown() -> None:
    assert (shorten("one\ntwo", 80), shorten("one two", 4), shorten("one", None)) == ("one", "one…", "one")
