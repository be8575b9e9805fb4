"""Problems of a SQL file: all in one message, each with line and column, the nearest name and what to write."""

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.engine.errors import DefinitionError
from penstock.stream import from_sql

COMPUTE = "Write humidity * 2 AS value in a query before (WITH), and aggregate the column value"
FILTER = "Name this query in WITH, and filter its rows by WHERE in the next one"


def list_problems(statement: str, folder: Path, name: str = "readings") -> list[str]:
    """Return the problems of a file, without the path of its folder."""
    file = folder / f"{name}.sql"
    file.write_text(dedent(statement).strip(), "utf-8")
    with pytest.raises(DefinitionError) as raised:
        from_sql(file)
    return [str(problem).replace(f"{file}:", "") for problem in raised.value.problems]


def test_one_message_has_all_problems_with_their_places(tmp_path: Path) -> None:
    statement = """
        CREATE STREAM readings AS
        SELECT device, AVGX(temperature) AS mean, COUNT(*), site, SUM(humidity * 2) AS total
        FROM sensor
        GROUP BY device, TUMBEL(INTERVAL '1' MINUTE)
        HAVING mean > 1
        EMIT REPEATEDLY(AFTER_CUONT(1)) LATENESS INTERVAL '1' HOOR
        INTO LATES(readings)
    """
    sinks = "Write one of these, or module:name for a sink of your own: complete, final, latest, log"
    expected = f"""
        2:16: aggregate: there is no aggregate 'AVGX'. Did you mean 'AVG'?
        2:43: SELECT: a result has no name. Write COUNT(*) AS count
        2:53: SELECT: 'site' is not in GROUP BY. Add it to GROUP BY, or aggregate it, as in LAST(...)
        2:63: SUM: 'humidity * 2' is an expression, not a column. {COMPUTE}
        3:6: FROM: there is no topic or query 'sensor'. Did you mean 'sensors'?
        4:18: window: there is no window 'TUMBEL'. Did you mean 'TUMBLE'?
        5:1: HAVING: a stream has no such clause. {FILTER}
        6:17: trigger.repeatedly: there is no trigger 'AFTER_CUONT'. Did you mean 'after_count'?
        7:6: write.mode: there is no sink 'LATES'. Did you mean 'latest'? {sinks}
    """
    assert list_problems(statement, tmp_path) == dedent(expected).strip().splitlines()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("", "1:1: SQL: the statement ends here. Write CREATE"),
        ("CREATE TABLE readings AS SELECT 1", "1:8: SQL: 'TABLE' is unexpected. Write STREAM"),
        ("CREATE STREAM", "CREATE STREAM: the name is missing. Write CREATE STREAM readings AS"),
        ("CREATE STREAM other AS {body}", "1:15: CREATE STREAM: 'other' is not the name of the file"),
        ("{create} {body}; SELECT 1", "SQL: a second statement"),
        ("{create} SELECT (COUNT(*) AS n FROM sensors", "1:34: SQL: '(' is not closed"),
        ("{create} SELECT COUNT(*)) AS n FROM sensors", "1:42: SQL: ')' closes nothing"),
        (
            "{create} SELECT 'it''s' -- isn't\n, 'text FROM sensors",
            "2:3: SQL: a text, name or comment does not end",
        ),
        ("{create} SELECT `name FROM sensors", "1:34: SQL: a text, name or comment does not end"),
        ("{create} SELECT /* n FROM sensors", "1:34: SQL: a text, name or comment does not end"),
        ("CREATE STREAM readings WITH (rate = 5) AS {body}", "1:30: WITH: there is no option 'rate'"),
        ("CREATE STREAM readings WITH (name = a, name = b) AS {body}", "1:40: WITH: name is written twice"),
        ("{create} SELECT COUNT(*) AS n FROM a, b", "1:54: FROM: two tables without a join"),
        ("{create} {body} INTO LOG(a, b)", "write: there is no argument '#2'"),
        ("{create} {body} INTO PUBLISH(TOPIC => a)", "INTO: PUBLISH has one argument"),
        (
            "{create} SELECT COUNT(*) AS n FROM sensors GRUOP BY site",
            "'GRUOP' is unexpected. Did you mean 'GROUP'?",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM sensors GROUP BY 1, TUMBLE(1 HOUR)",
            "GROUP BY: 1 is not a column",
        ),
        (
            "{create} WITH a AS ({body}) SELECT COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), 1 HOUR))",
            "DESCRIPTOR: the event time of these rows is given",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM TABLE(TUMBLE(TABLE sensors, DESCRIPTOR(), 1 HOUR))",
            "or it is not one column",
        ),
        (
            "{create} SELECT * FROM TUMBLE(TABLE clicks, 1 HOUR) a JOIN cards b USING (id) WINDOW TUMBLE(1 DAY)",
            "1:27: WINDOW: the sides of a join have two windows",
        ),
        ("{create} {body} ORDER BY n", "ORDER BY: a stream has no such clause"),
        ("{create} {body} EMIT RETRACTING DISCARDING", "accumulation is written twice"),
        ("{create} {body} EMIT LATENESS", "LATENESS has no value"),
        ("{create} {body} EMIT RETRACTING LATNESS 1 HOUR", "Did you mean 'LATENESS'?"),
        (
            "{create} SELECT * FROM sensors",
            "1:34: SELECT: '*' has no type. Write columns with types, as in CAST(device AS STRING) AS device",
        ),
        (
            "{create} SELECT DISTINCT COUNT(*) AS n FROM sensors",
            "1:34: SELECT: DISTINCT would compare",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM sensors GROUP BY TUMBLE(1 MINUTE, SIZE => 1 HOUR)",
            "there is no argument '#1'. Its arguments are: size",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM TABLE(CUMULATE(TABLE sensors, DESCRIPTOR(at)))",
            "1:59: FROM: there is no CUMULATE. Write TUMBLE, and EMIT AFTER_WATERMARK(EARLY => EVERY(...))",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM TABLE(STATEFUL(TABLE sensors, 'a:b'))",
            "SQL has no word for a stateful function; write it in YAML (stateful) or Python (.stateful())",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM TABLE(TUMBLE(TABLE sensors, 1 HOUR)) GROUP BY TUMBLE(1 HOUR)",
            "1:27: WINDOW: two windows in one query",
        ),
        (
            "{create} WITH unused AS (SELECT * FROM sensors) {body}",
            "1:32: WITH: no query reads unused. Read it in a later query, write INTO at its end, or remove it",
        ),
        (
            "{create} SELECT device AS d, COUNT(*) AS n FROM sensors GROUP BY device, TUMBLE(1 HOUR)",
            "1:34: SELECT: the key 'device' has another name here",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM sensors GROUP BY device, TUMBLE(1 HOUR)",
            "1:70: SELECT: the key 'device' is missing. Add it to SELECT",
        ),
        (
            "{create} SELECT COUNT(*) AS n, SUM(humidity) AS n FROM sensors GROUP BY TUMBLE(1 HOUR)",
            "1:66: SELECT: n is written twice",
        ),
        (
            "{create} SELECT * FROM clicks JOIN cards ON clicks.user = cards.card INTO LOG(a)",
            "the columns have two names, user and card. Rename one of them in a query before the join",
        ),
        (
            "{create} SELECT COUNT(*) AS n FROM sensors WITH (idle_aftr = 1) GROUP BY TUMBLE(1 HOUR)",
            "1:67: read: there is no argument 'idle_aftr'. Did you mean 'idle_after'?",
        ),
    ],
)
def test_a_problem_says_where_and_what_to_write(statement: str, problem: str, tmp_path: Path) -> None:
    body = "SELECT COUNT(*) AS n FROM sensors GROUP BY TUMBLE(INTERVAL '1' MINUTE)"
    problems = list_problems(statement.format(body=body, create="CREATE STREAM readings AS"), tmp_path)
    assert len(problems) == 1
    assert problem in problems[0]


def test_an_unknown_column_is_found_where_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "readings.sql"
    file.write_text(
        "CREATE STREAM readings AS\nSELECT device,\n  AVG(temprature) AS mean, MAX(temprature) AS most\n"
        "FROM sensors GROUP BY device, TUMBLE(1 MINUTE)\nEMIT LATENESS tomorrow",
        "utf-8",
    )
    with pytest.raises(DefinitionError) as raised:
        from_sql(file)
    places = [str(problem).partition(": ")[0].removeprefix(str(file)) for problem in raised.value.problems]
    assert places == [":3:7", ":3:32", ":5:6"]
