"""An interactive session of SQL, with completion, a history and paging."""

import shutil
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import click

from penstock.core.errors import PenstockError
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.platform.cli.answer_formats import AnswerFormat, write_answer
from penstock.platform.cli.line_editor import edit_lines
from penstock.platform.cli.output import print_table
from penstock.query.errors import UnknownTableError
from penstock.query.sql_query import QueryOptions, run_query
from penstock.query.table_names import find_table_path, list_table_names

LEAVE_WORDS = ("\\q", "quit;", "exit;")
PROMPT, CONTINUATION = "penstock> ", "     ...> "
HELP = """End a statement with a semicolon.
  \\d        list the tables
  \\d NAME   list the columns of a table, and what they mean
  \\?        show this help
  \\q        leave, as Ctrl-D does"""
KEYWORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "ORDER BY",
        "HAVING",
        "QUALIFY",
        "LIMIT",
        "WITH",
        "JOIN",
        "LEFT JOIN",
    ),
    *(
        "UNION ALL",
        "DISTINCT",
        "BETWEEN",
        "INTERVAL",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "DESC",
        "NULL",
        "AND",
    ),
    *("count(", "sum(", "avg(", "min(", "max(", "date_bin(", "date_trunc(", "row_number()", "now()"),
)


class SqlSession:
    """Reads statements from a terminal until its end, and prints their answers."""

    def __init__(
        self, warehouse: StoragePath, history: Path, options: QueryOptions, output_format: AnswerFormat
    ) -> None:
        self._warehouse = warehouse
        self._history = history
        self._options = options
        self._format = output_format
        self._columns: dict[str, list[str]] = {}

    def run(self, read_line: Callable[[str], str] = input) -> None:
        """Run statements until Ctrl-D. An error ends a statement, not the session."""
        click.secho("End a statement with a semicolon. \\? shows help, Ctrl-D leaves.", dim=True)
        with edit_lines(self._history, self.complete):
            while (statement := self._read_statement(read_line)) not in (None, *LEAVE_WORDS):
                try:
                    if statement and not self._run_meta_command(statement):
                        self._run_statement(statement)
                except PenstockError as error:
                    click.secho(str(error), fg="red", err=True)
                except KeyboardInterrupt:
                    click.echo("\nCancelled.")

    def complete(self, prefix: str, line: str) -> list[str]:
        """Return what a prefix may become: tables, the columns of tables that the line names, and keywords."""
        names = list_table_names(self._warehouse)
        columns = {column for name in names if name in line for column in self._list_columns(name)}
        known = [*sorted(columns), *names, *KEYWORDS]
        return [each for each in known if each.lower().startswith(prefix.lower())]

    def _read_statement(self, read_line: Callable[[str], str]) -> str | None:
        """Return the next statement or command; None at the end of the input, empty after Ctrl-C."""
        lines: list[str] = []
        while True:
            try:
                lines.append(read_line(CONTINUATION if lines else PROMPT))
            except EOFError:
                click.echo()
                return None
            except KeyboardInterrupt:
                click.echo()
                return ""
            text = "\n".join(lines).strip()
            if not text or text.startswith("\\") or text.endswith(";"):
                return text

    def _run_meta_command(self, text: str) -> bool:
        """Run a command of the session; return False for a statement."""
        word, _, name = text.partition(" ")
        match word:
            case "\\d" if name:
                self._print_columns(name.strip())
            case "\\d":
                rows = [(table, path) for table, path in list_table_names(self._warehouse).items()]
                print_table(
                    ("table", "path"), rows, empty="no tables yet; a stream creates them when it starts"
                )
            case _ if text.startswith("\\"):
                click.echo(HELP)
            case _:
                return False
        return True

    def _run_statement(self, statement: str) -> None:
        answer = run_query(self._warehouse, statement, self._options)
        printed = StringIO()
        with redirect_stdout(printed):
            write_answer(answer, self._format, None)
        text = printed.getvalue()
        if text.count("\n") >= shutil.get_terminal_size().lines - 1:
            click.echo_via_pager(text)
        else:
            click.echo(text, nl=False)
        click.secho(answer.describe_snapshots(), dim=True)

    def _print_columns(self, name: str) -> None:
        fields = open_delta_table(self._warehouse / find_table_path(self._warehouse, name)).schema().fields
        rows = [(field.name, _type_name(field.type), field.metadata.get("comment", "")) for field in fields]
        print_table(("column", "type", "meaning"), rows)

    def _list_columns(self, name: str) -> list[str]:
        if name not in self._columns:
            with suppress(UnknownTableError):  # dropped since it was listed
                path = find_table_path(self._warehouse, name)
                self._columns[name] = [
                    field.name for field in open_delta_table(self._warehouse / path).schema().fields
                ]
        return self._columns.get(name, [])


def _type_name(field_type: object) -> str:
    return str(getattr(field_type, "type", field_type))
