"""`penstock try`: results of a few records, without Kafka and Spark."""

import json
import subprocess
import sys
from pathlib import Path

READING = {"id": "1", "device": "a", "site": "s", "at": 1_767_268_805_000, "temperature": 20.0}


def write_readings(path: Path, *records: object) -> Path:
    path.write_text(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in records), "utf-8"
    )
    return path


def test_the_rows_of_a_file_are_printed(run, tmp_path: Path) -> None:
    file = write_readings(tmp_path / "readings.jsonl", READING, {**READING, "id": "2", "temperature": 30.0})
    result = run("try", "sensor_minute", "--from", str(file))
    assert result.out.splitlines() == [
        f"2 records ({file}), 0 late, 0 quarantined",
        "",
        "device  window_start          window_end            temperature  readings",
        "a       2026-01-01T12:00:00Z  2026-01-01T12:01:00Z  25.0         2",
    ]
    assert result.code == 0


def test_invalid_records_are_listed_and_end_with_1(run, tmp_path: Path) -> None:
    file = write_readings(tmp_path / "readings.jsonl", READING, "not json")
    result = run("try", "sensor_minute", "--from", str(file), "--json")
    answer = json.loads(result.out)
    assert [(row["topic"], row["offset"]) for row in answer["quarantined"]] == [("sensors", 1)]
    assert [row["readings"] for row in answer["latest"]] == [1]
    assert result.code == 1


def test_only_the_first_records_are_read(run, tmp_path: Path) -> None:
    file = write_readings(tmp_path / "readings.jsonl", *([READING] * 5))
    answer = json.loads(
        run("try", "sensor_minute", "--from", f"sensors={file}", "--limit", "3", "--json").out
    )
    assert (answer["records"], [row["readings"] for row in answer["latest"]]) == (3, [3])


def test_csv_is_read_by_its_suffix(run, tmp_path: Path) -> None:
    file = tmp_path / "readings.csv"
    file.write_text("id,device,site,at,temperature\n1,a,s,1767268805000,20.5\n", "utf-8")
    answer = json.loads(run("try", "sensor_minute", "--from", str(file), "--json").out)
    assert [row["temperature"] for row in answer["latest"]] == [20.5]


def test_samples_are_the_same_each_time(run) -> None:
    first, second = (json.loads(run("try", "card_limits", "--limit", "40", "--json").out) for _ in range(2))
    assert first == second
    assert (first["records"], first["input"]) == (80, "generated sample records")


def test_a_missing_input_is_named(run, tmp_path: Path) -> None:
    file = write_readings(tmp_path / "x.jsonl", READING)
    assert "there is no input for ad-clicks. Add --from ad-clicks=FILE" in (
        run("try", "click_through", "--from", f"impressions={file}").err
    )
    assert "Name the topic: --from impressions=FILE" in run("try", "click_through", "--from", str(file)).err
    unknown = run("try", "sensor_minute", "--from", f"sensor={file}")
    assert "there is no topic 'sensor'. Did you mean 'sensors'?" in unknown.err
    assert unknown.code == 2
    missing = run("try", "sensor_minute", "--from", "no.jsonl")
    assert "no.jsonl does not exist. Name a file" in missing.err
    assert missing.code == 2


def test_a_breakpoint_in_a_function_stops_there(home: Path, tmp_path: Path) -> None:
    """The debugger needs the terminal to itself: no other thread, no captured output."""
    script = tmp_path / "debug.py"
    script.write_text(
        "import sys\n"
        "from penstock.pipelines.catalog import running_avg\n"
        "from penstock.platform.cli.main import main\n"
        "def double(row):\n"
        "    breakpoint()\n"
        "    return {'key': row['key'], 'value': 2 * row['value']}\n"
        "from penstock.stream import fixed, mean, read\n"
        "mapped = read('avg').map(double, returns={'key': 'STRING', 'value': 'DOUBLE'}, version='1')\n"
        "running_avg.running_avg = (\n"
        "    mapped.key('key').aggregate(mean=mean('value')).window(fixed('1 minute')).write('running_avg')\n"
        ")\n"
        "sys.argv = ['penstock', 'try', 'running_avg', '--limit', '5']\n"
        "main()\n",
        "utf-8",
    )
    debugger_commands = "p 'stopped at', sorted(row)\n" + "continue\n" * 5
    finished = subprocess.run(
        [sys.executable, script],
        input=debugger_commands,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "('stopped at', ['at', 'key', 'value'])" in finished.stdout, finished.stderr
    assert (finished.returncode, finished.stdout.count("(Pdb)")) == (0, 6), finished.stderr
