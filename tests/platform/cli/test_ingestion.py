"""Topics, feeds and consumers as a person meets them, over a real broker."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.ingestion.registry_server import run_registry_server
from tests.ingestion.servers import run_line_server
from tests.ingestion.topic_reading import read_topic

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.ledger import read_addresses, read_ledger_state

pytestmark = pytest.mark.kafka
LINES = 20_000
PENSTOCK = (sys.executable, "-m", "penstock.platform.cli")


@pytest.fixture
def on_broker(run, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch):
    """Run commands against the session's broker, with every topic of the catalog there."""
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    assert run("topics", "apply").code == 0
    return run


def by_sequence(key: bytes | None, sequence: int) -> int:
    """A route of the test's own: every tenth record to partition 1, the others to 2."""
    return 1 if sequence % 10 == 0 else 2


def no_number(key: bytes | None, sequence: int) -> str:
    return "first"


def test_an_environment_that_no_contract_declares_is_wrong_usage(run):
    answer = run("topics", "plan", "--environment", "nonsense")
    assert answer.code == 2
    assert "there is no environment 'nonsense'; known names: local, production" in answer.err


def test_topics_are_planned_applied_and_then_as_declared(run, broker: LocalBroker, monkeypatch):
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    before = run("topics", "plan", "--json")
    assert json.loads(before.out)["schemas"]["sensors"] == 1
    assert before.code == 1
    assert "register  sensors" in run("topics", "apply").out
    after = run("topics", "plan")
    assert (after.code, after.out.splitlines()[0]) == (
        0,
        "no changes: topics and schemas match their contracts",
    )
    wider = run("topics", "plan", "--environment", "production")
    assert "partitions: 3 -> 12" in wider.out
    assert wider.code == 1


def test_a_contract_that_its_registered_versions_forbid_is_refused(on_broker, home: Path):
    registry = home / "registry" / "schemas.json"
    known = json.loads(registry.read_text())
    for number, schema in known["schemas"].items():
        if schema["title"] == "sensors":
            schema = json.loads(json.dumps(schema).replace('"temperature"', '"warmth"'))
            known["schemas"][number] = schema
            schema["properties"]["site"]["type"] = "integer"
            schema["properties"]["site"]["format"] = "long"
    registry.write_text(json.dumps(known))
    for words in (("topics", "plan"), ("topics", "apply"), ("ingest", "sensors", "--count", "1")):
        refused = on_broker(*words)
        assert refused.code == 2
        assert "field 'site' breaks backward compatibility" in refused.err


def test_schemas_are_registered_at_a_registry_that_wants_a_login(on_broker, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_KAFKA__REGISTRY_LOGIN", "env:LOGIN")
    monkeypatch.setenv("LOGIN", "penstock:canary-c0de")
    with run_registry_server(tmp_path / "served", login="penstock:canary-c0de") as url:
        monkeypatch.setenv("PENSTOCK_KAFKA__REGISTRY", url)
        assert "register  sensors" in on_broker("topics", "apply").out
        assert on_broker("topics", "plan").code == 0
        assert on_broker("ingest", "sensors", "--count", "3").code == 0
        assert "canary-c0de" not in on_broker("status", "--settings").out


def test_a_feed_ends_after_its_count_and_says_what_it_did(on_broker, home: Path):
    answer = on_broker("ingest", "clicks", "--count", "1000", "--seed", "7")
    assert answer.code == 0
    assert answer.out.startswith("1,000 records acknowledged in ")
    assert answer.err.startswith("clicks-7 to clicks at 127.0.0.1:")
    again = json.loads(on_broker("ingest", "clicks", "--count", "500", "--seed", "7", "--json").out)
    assert (again["topic"], again["first_sequence"], again["acknowledged_until"], again["complete"]) == (
        "clicks",
        1_000,
        1_500,
        True,
    )
    assert read_ledger_state(home / "producers" / "clicks-7").acknowledged_until == 1_500


def test_each_record_is_found_where_the_ledger_says(on_broker, broker: LocalBroker):
    on_broker("ingest", "tweets", "--count", "400", "--seed", "9")
    words = ("producer", "where", "tweets-9", "123", "--count", "200", "--json")
    told = {one["sequence"]: (one["partition"], one["offset"]) for one in json.loads(on_broker(*words).out)}
    there = {
        (one.partition, one.offset): json.loads(one.value)["id"]
        for one in read_topic(broker.bootstrap, "tweets")
    }
    assert {sequence: there[place] for sequence, place in told.items()} == {
        n: f"9-{n}" for n in range(123, 323)
    }
    beyond = on_broker("producer", "where", "tweets-9", "399", "--count", "2")
    assert (beyond.code, beyond.out.splitlines()[1].split()[:2]) == (1, ["399", "tweets"])
    assert (
        "1 records without an address, the first is 400: not sent yet: the producer has reached 400"
        in beyond.err
    )


def test_a_route_of_ones_own_decides_on_the_partition(on_broker, home: Path):
    route = f"{by_sequence.__module__}:by_sequence"
    assert on_broker("ingest", "tweets", "--count", "100", "--route", route).code == 0
    lanes = [address.partition for address in read_addresses(home / "producers" / "tweets-1")]
    assert lanes == [1 if sequence % 10 == 0 else 2 for sequence in range(100)]
    on_broker("ingest", "cards", "--count", "12", "--route", "round-robin")
    lanes = [address.partition for address in read_addresses(home / "producers" / "cards-1")]
    assert lanes == [0, 1, 2, 3, 4, 5] * 2
    for wrong, said in (
        ("nowhere:at_all", "module:function"),
        ("os.path:join", "failed for key"),
        ("builtins:max", "failed for key"),
        (f"{by_sequence.__module__}:no_number", "Return an integer"),
    ):
        refused = on_broker("ingest", "cards", "--count", "9", "--producer", "wrong", "--route", wrong)
        assert refused.code == 1
        assert said in refused.err


def test_files_are_replayed_in_disorder_under_a_name_of_their_own(on_broker, home: Path, tmp_path: Path):
    rows = [f"r{n},d{n % 3},s,{1_700_000_000_000 + n},1.5" for n in range(300)]
    (tmp_path / "some readings.csv").write_text("id,device,site,at,temperature\n" + "\n".join(rows))
    path = ("--path", str(tmp_path / "some readings.csv"))
    words = ("ingest", "csv", *path, "--topic", "sensors", "--disorder", "0.5", "--max-delay", "1 second")
    assert on_broker(*words).code == 0
    assert read_ledger_state(home / "producers" / "sensors-csv-some-readings-csv").acknowledged_until == 300


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sensors", "--path", "x.csv"), "Source 'sensors' has no option --path (x.csv)"),
        (
            ("socket", "--address", "127.0.0.1:1", "--topic", "lines", "--rate", "3"),
            "has no option --rate (3). Options: --address, --text, --follow",
        ),
        (("csv", "--path", "/nowhere", "--topic", "sensors", "--seed", "3"), "leave the seed out"),
        (("http", "--address", "here", "--topic", "sensors"), "Use host:port"),
        (("sensors", "--producer", "../x"), "is not a valid producer name"),
        (("csv", "--path", "readings.csv"), "has no default topic. Name one, as in --topic sensors"),
        (("csv", "--topic", "sensors"), "needs the option --path"),
        (
            ("csv", "--path", "/nowhere", "--topic", "sensors", "--text"),
            "has no option --text (True). Options: --path, --follow, --speed, --rate, --replay-by, --disorder",
        ),
        (("sse", "--url", "here", "--topic", "sensors"), "Start it with http:// or https://"),
        (("flights", "--replay-by", "origin", "--speed", "2"), "'origin' of flights is not a timestamp"),
    ],
)
def test_an_order_that_cannot_be_meant_is_wrong_usage(words: tuple[str, ...], said: str, run):
    answer = run("ingest", *words)
    assert answer.code == 2
    assert said in answer.err


def test_ctrl_c_finishes_what_is_in_flight(on_broker, home: Path):
    ledger = home / "producers" / "sensors-1"
    command = [*PENSTOCK, "ingest", "sensors", "--rate", "500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_until(
            lambda: ledger.exists() and read_ledger_state(ledger).acknowledged_until > 50,
            60,
            "the feed to send",
        )
        process.send_signal(signal.SIGINT)
        assert "acknowledged" in process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert read_ledger_state(ledger).pending_intents == []


def test_a_consumer_shows_what_its_group_holds_and_goes_on_where_it_was(on_broker, home: Path):
    on_broker("ingest", "nexmark-bids", "--count", "300")
    first = on_broker("consume", "topic", "nexmark-bids", "--group", "people", "--count", "120")
    rest = on_broker("consume", "topic", "nexmark-bids", "--group", "people", "--count", "180")
    assert "people: assigned 0, 1, 2, 3, 4, 5; assignment: partitions 0, 1, 2, 3, 4, 5" in first.err
    assert "180 records handled and committed" in rest.err
    ids = [json.loads(line)["id"] for line in (first.out + rest.out).splitlines()]
    assert sorted(ids) == sorted(f"1-{n}" for n in range(300))


def test_a_topic_that_is_not_there_is_told_and_not_waited_for(on_broker):
    answer = on_broker("consume", "topic", "nonsense")
    assert answer.code == 1
    assert "No topic nonsense at 127.0.0.1:" in answer.err


def test_lines_are_consumed_straight_from_a_socket(on_broker):
    with run_line_server(lambda client: client.sendall(b"one\ntwo\nthree\n")) as port:
        answer = on_broker("consume", "socket", f"127.0.0.1:{port}", "--count", "2")
    assert answer.out == "one\ntwo\n"


def test_a_slow_consumer_holds_a_socket_back_and_no_sender_of_a_topic(on_broker, home: Path):
    """The same sender and the same slow consumer: what the sender could hand over while one handful was handled."""
    handed: list[int] = []
    line = b'{"id":"%d","device":"d","site":"' + b"s" * 2_000 + b'","at":1,"temperature":1}\n'

    def serve(client) -> None:
        handed.clear()
        for number in range(10, LINES + 1, 10):
            client.sendall(b"".join(line % n for n in range(number - 10, number)))
            handed.append(number)

    with run_line_server(serve) as port:
        command = [*PENSTOCK, "consume", "socket", f"127.0.0.1:{port}", "--pause", "600"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as slow:
            held = still(handed)
            slow.send_signal(signal.SIGINT)
    assert held < LINES
    with run_line_server(serve) as port:
        words = ("--address", f"127.0.0.1:{port}", "--topic", "sensors", "--producer", "through")
        assert on_broker("ingest", "socket", *words).code == 0
    assert handed[-1] == LINES
    assert read_ledger_state(home / "producers" / "through").acknowledged_until == LINES


def still(handed: list[int]) -> int:
    """Wait until a sender gets nothing more rid of, and return how much it did."""
    seen = [-1]

    def stands() -> bool:
        before, seen[0] = seen[0], handed[-1] if handed else -1
        threading.Event().wait(0.5)
        return seen[0] > 0 and seen[0] == before

    wait_until(stands, 60, "the sender to be held back")
    return handed[-1]


def test_topics_are_listed_with_what_they_hold(on_broker):
    def ovens() -> tuple[dict, list[int]]:
        (found,) = json.loads(on_broker("topics", "list", "ovens", "--json").out)
        return found, [each["end_offset"] - each["start_offset"] for each in found["partitions"]]

    _, before = ovens()
    assert on_broker("ingest", "ovens", "--count", "100", "--seed", "9").code == 0
    found, after = ovens()
    assert sum(after) - sum(before) == 100
    assert (found["replicas"], found["retention_ms"], found["is_compacted"]) == (1, 7 * 86_400_000, False)
    listed = on_broker("topics", "list").out
    assert "retention" in listed.splitlines()[0]
    assert any(line.split()[:5] == ["ovens", "3", "1", "7", "days"] for line in listed.splitlines())
    assert "first offset" in on_broker("topics", "list", "ovens").out
    answer = on_broker("topics", "list", "nonsense")
    assert answer.code == 2
    assert "there is no topic 'nonsense'" in answer.err
