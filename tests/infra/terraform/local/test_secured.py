"""The secured environment, really applied: who gets in, who may do what, and where no secret is found."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.infra.terraform.checkouts import block_of_ports, copy_environments, local_environment
from tests.infra.terraform.searching import holding

from penstock.infra.environments.outputs import EnvironmentOutputs, parse_outputs
from penstock.infra.kafka_access import kafka_client_config
from penstock.infra.local.certificates import make_certificates
from penstock.infra.terraform import TerraformEvent, TerraformWorkspace
from penstock.infra.terraform.errors import PlanFailedError

pytestmark = [pytest.mark.whole, pytest.mark.timeout(400)]
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)

TOPIC = "told"
REFUSED_SECONDS = 15.0
Client = dict[str, str | int]


@pytest.fixture(scope="module")
def told() -> list[TerraformEvent]:
    return []


@pytest.fixture(scope="module")
def workspace(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, told: list[TerraformEvent]
) -> Iterator[TerraformWorkspace]:
    root = tmp_path_factory.mktemp("secured")
    copy_environments(root)
    jars = pytestconfig.rootpath / ".penstock" / "jars"
    made = local_environment(root, jars, block_of_ports(), secured=True, workers=1)
    made.apply(made.plan(), on_event=told.append)
    yield made
    made.apply(made.plan(destroy=True))


@pytest.fixture(scope="module")
def outputs(workspace: TerraformWorkspace) -> EnvironmentOutputs:
    return parse_outputs(workspace.read_outputs())


def client(outputs: EnvironmentOutputs, user: str) -> Client:
    return {**kafka_client_config(outputs.kafka.kafka_access, user), "log_level": 0}


def produce(settings: Client, value: bytes) -> KafkaError | None:
    """Write one record and return why it was refused, if it was."""
    errors: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 15_000})
    producer.produce(TOPIC, value, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(20)
    return errors[0]


def test_a_plan_right_after_apply_shows_no_change(
    workspace: TerraformWorkspace, outputs: EnvironmentOutputs
) -> None:
    assert workspace.plan().is_empty
    assert outputs.kafka.security.protocol == "SASL_SSL"
    assert set(outputs.kafka.security.secrets) == {"ingestion", "host", "topics"}


def test_each_user_does_its_own_work(outputs: EnvironmentOutputs) -> None:
    keeper = AdminClient(client(outputs, "topics"))
    keeper.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
    assert produce(client(outputs, "ingestion"), b"told") is None
    reader = Consumer({**client(outputs, "host"), "group.id": "penstock", "auto.offset.reset": "earliest"})
    reader.subscribe([TOPIC])
    message = reader.poll(30)
    assert message is not None
    assert message.value() == b"told"
    reader.commit(message, asynchronous=False)
    reader.close()


def test_nobody_does_anothers_work(outputs: EnvironmentOutputs) -> None:
    refused = produce(client(outputs, "host"), b"no")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    admin = AdminClient(client(outputs, "ingestion"))
    with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
        admin.create_topics([NewTopic("mine", 1)])["mine"].result(30)


def is_refused(settings: Client, by: int) -> bool:
    """Whether a client is told, in its own codes, that it does not get in, and learns nothing of the cluster."""
    told: set[int] = set()
    admin = AdminClient({**settings, "error_cb": lambda error: told.add(error.code())})
    deadline = time.monotonic() + REFUSED_SECONDS
    while by not in told and time.monotonic() < deadline:
        admin.poll(0.1)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.2)
    return by in told


@pytest.mark.parametrize("change", [{"sasl.password": "wrong"}, {"sasl.username": "nobody"}], ids=str)
def test_strangers_are_told_that_they_do_not_get_in(outputs: EnvironmentOutputs, change: Client) -> None:
    assert is_refused({**client(outputs, "host"), **change}, KafkaError._AUTHENTICATION)


ASK_FOR_TOPICS = struct.pack(">ihhihi", 14, 3, 0, 1, -1, 0)
"""What a client asks first that wants to know the cluster: Kafka's Metadata request, version 0, for all topics."""


@pytest.mark.parametrize("encrypted", [False, True], ids=["no TLS", "no name"])
def test_whoever_says_no_name_is_hung_up_on(outputs: EnvironmentOutputs, encrypted: bool) -> None:
    host, _, port = outputs.kafka.brokers[0].partition(":")
    with socket.create_connection((host, int(port)), timeout=REFUSED_SECONDS) as plain:
        trusted = ssl.create_default_context(cafile=str(client(outputs, "host")["ssl.ca.location"]))
        with trusted.wrap_socket(plain, server_hostname=host) if encrypted else plain as broker:
            broker.sendall(ASK_FOR_TOPICS)
            answer = broker.recv(100)
    # TLS ends with an alert of a few bytes; an answer of Kafka's would carry the number of the question.
    assert struct.pack(">i", 1) not in answer
    assert len(answer) == (0 if encrypted else 7)


def test_a_server_that_another_authority_signed_is_not_trusted(
    outputs: EnvironmentOutputs, tmp_path: Path
) -> None:
    make_certificates(tmp_path, NOON)
    stranger = {**client(outputs, "host"), "ssl.ca.location": str(tmp_path / "ca.pem")}
    assert is_refused(stranger, KafkaError._SSL)


JOB = """
import sys
from pyspark.sql import SparkSession
job = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", False)
job = job.config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m")
print("rows", job.getOrCreate().range(1000).selectExpr("sum(id)").first()[0])
"""


def job(outputs: EnvironmentOutputs, *submitted: str) -> subprocess.Popen[str]:
    """A job for the environment's Spark, begun with further words for `spark-submit`."""
    words = " ".join([*submitted, "pyspark-shell"])
    return subprocess.Popen(
        [sys.executable, "-c", JOB, outputs.spark.master],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": words, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_spark_does_not_take_a_job_that_does_not_know_the_secret(outputs: EnvironmentOutputs) -> None:
    with job(outputs) as stranger:
        assert stranger.stderr is not None
        # It tries again for a minute; that the master refused it is known after the first.
        refused = next((line for line in stranger.stderr if "Failed to connect to master" in line), None)
        family = [psutil.Process(stranger.pid), *psutil.Process(stranger.pid).children(recursive=True)]
        for process in family:
            process.kill()
        assert stranger.stdout is not None
        assert (refused is not None, stranger.stdout.read()) == (True, "")


def test_spark_takes_a_job_that_knows_the_secret(outputs: EnvironmentOutputs) -> None:
    told = Path(outputs.spark.secret).with_name("worker.properties")
    with job(outputs, "--properties-file", str(told)) as known:
        said, problem = known.communicate(timeout=120)
    assert "rows 499500" in said, problem[-2000:]


def test_no_secret_is_where_it_should_not_be(
    workspace: TerraformWorkspace, outputs: EnvironmentOutputs, told: list[TerraformEvent]
) -> None:
    """Every file of the environment, every event and every command line is searched for every secret."""
    files = [Path(path) for path in outputs.kafka.security.secrets.values()] + [Path(outputs.spark.secret)]
    values = {path.read_bytes() for path in files}
    assert len(values) == 4
    plan = workspace.plan()
    root = workspace.work_directory.parent
    may_hold = {*files, *Path(outputs.spark.secret).parent.glob("*.properties")}
    searched = [path for path in root.rglob("*") if path.is_file() and path not in may_hold]
    assert any(path.name == "terraform.tfstate" for path in searched)
    assert any(path.suffix == ".log" for path in searched)
    assert any(path.suffix == ".tfplan" for path in searched)
    assert holding(searched, values) == []
    shown = f"{plan!r} {told!r} {outputs!r}".encode()
    lines = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, check=True).stdout
    assert not [value for value in values if value in shown or value in lines]


def test_secrets_and_keys_are_their_owners_alone(outputs: EnvironmentOutputs) -> None:
    kept = [Path(path) for path in outputs.kafka.security.secrets.values()] + [Path(outputs.spark.secret)]
    kept += list(Path(outputs.kafka.security.ca).parent.glob("*.key"))
    kept += list(Path(outputs.spark.secret).parent.glob("*.properties"))
    assert len(kept) == 7
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


def test_a_cluster_is_not_opened_afterwards(workspace: TerraformWorkspace) -> None:
    import dataclasses

    opened = dataclasses.replace(workspace, variables={**workspace.variables, "secured": False})
    with pytest.raises(PlanFailedError, match="Destroy it first"):
        opened.plan()
