"""Commands for topics, feeds and consumers, with a real broker."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ingestion.registry_server import run_registry_server
from tests.ingestion.topic_reading import read_topic
from tests.installed_kinds import write_modules
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.ledger import read_addresses, read_ledger_state

pytestmark = pytest.mark.kafka
PENSTOCK = (sys.executable, "-m", "penstock.platform.cli")


@pytest.fixture
def run_on_broker(run, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch):
    """Run commands with the broker of the session and all topics of the catalog."""
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    assert run("topics", "apply").code == 0
    return run


def by_sequence(key: bytes | None, sequence: int) -> int:
    """A user partitioner: every tenth record to partition 1, the others to 2."""
    return 1 if sequence % 10 == 0 else 2


def no_number(key: bytes | None, sequence: int) -> str:
    return "first"


def test_an_unknown_environment_is_a_usage_error(run):
    result = run("topics", "plan", "--environment", "nonsense")
    assert result.code == 2
    assert "there is no environment 'nonsense'; known names: local, production" in result.err


def test_topics_are_planned_and_applied(run, broker: LocalBroker, monkeypatch):
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


def test_an_incompatible_contract_is_refused(run_on_broker, home: Path):
    registry = home / "registry" / "schemas.json"
    registered = json.loads(registry.read_text())
    for number, schema in registered["schemas"].items():
        if schema["title"] == "sensors":
            schema = json.loads(json.dumps(schema).replace('"temperature"', '"warmth"'))
            registered["schemas"][number] = schema
            schema["properties"]["site"]["type"] = "integer"
            schema["properties"]["site"]["format"] = "long"
    registry.write_text(json.dumps(registered))
    for arguments in (("topics", "plan"), ("topics", "apply"), ("ingest", "sensors", "--count", "1")):
        refused = run_on_broker(*arguments)
        assert refused.code == 2
        assert "field 'site' breaks backward compatibility" in refused.err


def test_refused_records_are_explained_and_end_with_1(run_on_broker, tmp_path: Path):
    path = tmp_path / "readings.jsonl"
    valid = '{"id":"%d","device":"d","site":"s","at":1700000000000,"temperature":1}'
    invalid = valid.replace("1700000000000", '"noon"')
    path.write_text("".join(f"{text % number}\n" for number, text in enumerate([valid, invalid, invalid])))
    arguments = ("ingest", "json-lines", "--path", str(path), "--topic", "sensors")
    refused = run_on_broker(*arguments, "--producer", "strict")
    assert refused.code == 1
    assert "2 of them refused" in refused.out
    (row,) = [line for line in refused.out.splitlines() if "wrong_type:at" in line]
    assert row.split("  ")[0] == "2"
    assert 'expected timestamp in epoch milliseconds, found "noon"' in row
    assert f"{path}:2" in row
    assert "penstock quarantine list sensors" in refused.out
    accepted = run_on_broker(*arguments, "--producer", "lenient", "--allow-invalid", "--json")
    assert accepted.code == 0
    (reason,) = json.loads(accepted.out)["refused"]
    assert (reason["reason"], reason["records"]) == ("wrong_type:at", 2)


def test_dead_letters_are_exactly_the_invalid_records(run_on_broker, broker: LocalBroker, tmp_path: Path):
    path, valid = tmp_path / "mixed.jsonl", '{"id":"mixed-%d","device":"d","site":"s","at":1700000000000}'
    values = [(valid if number % 7 else valid.replace('"s"', "3")) % number for number in range(1, 701)]
    path.write_text("".join(f"{value}\n" for value in values))
    arguments = ("ingest", "json-lines", "--path", str(path), "--topic", "sensors", "--producer", "mixed")
    first = run_on_broker(*arguments, "--count", "300", "--allow-invalid", "--json")
    rest = run_on_broker(*arguments, "--allow-invalid")
    assert (first.code, rest.code) == (0, 0)
    summary = json.loads(first.out)
    assert (summary["acknowledged"], summary["dead_letters"]) == (300, 42)
    assert rest.out.splitlines()[0].startswith("400 records acknowledged in ")
    assert rest.out.splitlines()[0].endswith(", 58 of them refused")
    for topic, is_expected in (("sensors", True), ("sensors.dead-letters", False)):
        sent = [r.value.decode() for r in read_topic(broker.bootstrap, topic) if b'"mixed-' in r.value]
        assert sorted(sent) == sorted(v for v in values if ('"site":"s"' in v) is is_expected)
    nothing_new = run_on_broker(*arguments)
    assert nothing_new.code == 0, "this run sent nothing, so it refused nothing"


FAILING_SOURCE = """
import json

from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources import ReplayableSource, SourceKind


class ShopSource(ReplayableSource, SourceKind):
    kind = "shop"

    def __init__(self):
        self.description = "shop"

    @classmethod
    def open(cls, context):
        return cls()

    def read(self, position):
        for first in range(position or 0, 500, 10):
            yield SourceBatch([self.read_order(number) for number in range(first, first + 10)], first)

    def read_order(self, number):
        order = {"id": f"shop-{number}", "device": "d", "site": "s", "at": 1_700_000_000_000}
        return json.dumps(order | {"temperature": 1 / (number - 255)}).encode()
"""


def test_a_failing_source_says_where_and_its_next_run_resumes(
    run_on_broker, broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_modules(tmp_path, monkeypatch, shop_source=FAILING_SOURCE)
    arguments = ("ingest", "shop_source:ShopSource", "--topic", "sensors")
    failed = run_on_broker(*arguments)
    assert failed.code == 1
    line = next(number for number, text in enumerate(FAILING_SOURCE.splitlines(), 1) if "255" in text)
    location = f"{tmp_path / 'shop_source.py'}:{line}"
    assert (
        f"source shop_source:ShopSource failed: {location}: ZeroDivisionError: division by zero. "
        "250 records were acknowledged before. Fix the source: the next run of producer sensors-shop resumes there"
    ) in failed.err
    assert f"{location}, in read_order" in failed.err
    write_modules(tmp_path, monkeypatch, shop_source=FAILING_SOURCE.replace("255", "10_000"))
    fixed = run_on_broker(*arguments)
    assert (fixed.code, fixed.out.partition(" in ")[0]) == (0, "250 records acknowledged")
    ids = [json.loads(r.value)["id"] for r in read_topic(broker.bootstrap, "sensors") if b'"shop-' in r.value]
    assert sorted(ids) == sorted(f"shop-{number}" for number in range(500)), "none is lost or sent twice"


def test_schemas_are_registered_with_a_login(run_on_broker, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_KAFKA__REGISTRY_LOGIN", "env:LOGIN")
    monkeypatch.setenv("LOGIN", "penstock:canary-c0de")
    with run_registry_server(tmp_path / "served", login="penstock:canary-c0de") as url:
        monkeypatch.setenv("PENSTOCK_KAFKA__REGISTRY", url)
        assert "register  sensors" in run_on_broker("topics", "apply").out
        assert run_on_broker("topics", "plan").code == 0
        assert run_on_broker("ingest", "sensors", "--count", "3").code == 0
        assert "canary-c0de" not in run_on_broker("status", "--settings").out


def test_a_feed_ends_after_its_count_with_a_summary(run_on_broker, home: Path):
    result = run_on_broker("ingest", "clicks", "--count", "1000", "--seed", "7")
    assert result.code == 0
    assert result.out.startswith("1,000 records acknowledged in ")
    assert result.err.startswith("clicks-7 to clicks at 127.0.0.1:")
    second = json.loads(run_on_broker("ingest", "clicks", "--count", "500", "--seed", "7", "--json").out)
    assert (second["topic"], second["first_sequence"], second["acknowledged_until"], second["complete"]) == (
        "clicks",
        1_000,
        1_500,
        True,
    )
    assert read_ledger_state(home / "producers" / "clicks-7").acknowledged_until == 1_500


def test_each_record_is_at_its_address_in_the_ledger(run_on_broker, broker: LocalBroker):
    run_on_broker("ingest", "tweets", "--count", "400", "--seed", "9")
    arguments = ("producer", "where", "tweets-9", "123", "--count", "200", "--json")
    addresses = {
        record["sequence"]: (record["partition"], record["offset"])
        for record in json.loads(run_on_broker(*arguments).out)
    }
    ids = {
        (record.partition, record.offset): json.loads(record.value)["id"]
        for record in read_topic(broker.bootstrap, "tweets")
    }
    assert {sequence: ids[position] for sequence, position in addresses.items()} == {
        n: f"9-{n}" for n in range(123, 323)
    }
    past_end = run_on_broker("producer", "where", "tweets-9", "399", "--count", "2")
    assert (past_end.code, past_end.out.splitlines()[1].split()[:2]) == (1, ["399", "tweets"])
    assert (
        "1 records without an address, the first is 400: not sent yet: the producer has reached 400"
        in past_end.err
    )


def test_a_user_partitioner_chooses_the_partition(run_on_broker, home: Path):
    route = f"{by_sequence.__module__}:by_sequence"
    assert run_on_broker("ingest", "tweets", "--count", "100", "--route", route).code == 0
    partitions = [address.partition for address in read_addresses(home / "producers" / "tweets-1")]
    assert partitions == [1 if sequence % 10 == 0 else 2 for sequence in range(100)]
    run_on_broker("ingest", "cards", "--count", "12", "--route", "round-robin")
    partitions = [address.partition for address in read_addresses(home / "producers" / "cards-1")]
    assert partitions == [0, 1, 2, 3, 4, 5] * 2
    for invalid_route, message in (
        ("nowhere:at_all", "module:function"),
        ("os.path:join", "failed for key"),
        ("builtins:max", "failed for key"),
        (f"{by_sequence.__module__}:no_number", "Return an integer"),
    ):
        refused = run_on_broker(
            "ingest", "cards", "--count", "9", "--producer", "wrong", "--route", invalid_route
        )
        assert refused.code == 1
        assert message in refused.err


def test_a_file_is_replayed_in_disorder_with_its_own_producer_name(run_on_broker, home: Path, tmp_path: Path):
    rows = [f"r{n},d{n % 3},s,{1_700_000_000_000 + n},1.5" for n in range(300)]
    (tmp_path / "some readings.csv").write_text("id,device,site,at,temperature\n" + "\n".join(rows))
    path = ("--path", str(tmp_path / "some readings.csv"))
    arguments = ("ingest", "csv", *path, "--topic", "sensors", "--disorder", "0.5", "--max-delay", "1 second")
    assert run_on_broker(*arguments).code == 0
    assert read_ledger_state(home / "producers" / "sensors-csv-some-readings-csv").acknowledged_until == 300


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_conflicting_options_are_a_usage_error(arguments: tuple[str, ...], message: str, run):
    result = run("ingest", *arguments)
    assert result.code == 2
    assert message in result.err


def test_ctrl_c_waits_for_records_in_flight(run_on_broker, home: Path):
    ledger = home / "producers" / "sensors-1"
    command = [*PENSTOCK, "ingest", "sensors", "--rate", "500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_until(
            lambda: ledger.exists() and read_ledger_state(ledger).acknowledged_until > 50,
            PATIENCE_S,
            "the feed to send",
        )
        process.send_signal(signal.SIGINT)
        assert "acknowledged" in process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert read_ledger_state(ledger).pending_intents == []


def test_a_consumer_shows_its_assignment_and_resumes(run_on_broker, home: Path):
    run_on_broker("ingest", "nexmark-bids", "--count", "300")
    first = run_on_broker("consume", "nexmark-bids", "--group", "people", "--count", "120")
    rest = run_on_broker("consume", "nexmark-bids", "--group", "people", "--count", "180")
    assert "people: assigned 0, 1, 2, 3, 4, 5; assignment: partitions 0, 1, 2, 3, 4, 5" in first.err
    assert "180 records handled and committed" in rest.err
    ids = [json.loads(line)["id"] for line in (first.out + rest.out).splitlines()]
    assert sorted(ids) == sorted(f"1-{n}" for n in range(300))


def test_a_missing_topic_is_reported(run_on_broker):
    result = run_on_broker("consume", "nonsense")
    assert result.code == 2
    assert "there is no topic 'nonsense'" in result.err
    assert run_on_broker("topics", "plan", "--allow-destroy", "nonsense").code == 2


def test_topics_are_listed_with_their_offsets(run_on_broker):
    def ovens() -> tuple[dict, list[int]]:
        (topic,) = json.loads(run_on_broker("topics", "list", "ovens", "--json").out)
        return topic, [
            partition["end_offset"] - partition["start_offset"] for partition in topic["partitions"]
        ]

    _, before = ovens()
    assert run_on_broker("ingest", "ovens", "--count", "100", "--seed", "9").code == 0
    topic, after = ovens()
    assert sum(after) - sum(before) == 100
    assert (topic["replicas"], topic["retention_ms"], topic["is_compacted"]) == (1, 7 * 86_400_000, False)
    listed = run_on_broker("topics", "list").out
    assert "retention" in listed.splitlines()[0]
    assert any(line.split()[:5] == ["ovens", "3", "1", "7", "days"] for line in listed.splitlines())
    assert "first offset" in run_on_broker("topics", "list", "ovens").out
    result = run_on_broker("topics", "list", "nonsense")
    assert result.code == 2
    assert "there is no topic 'nonsense'" in result.err
