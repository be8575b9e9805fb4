"""The secured environment `local`: authentication, authorization, and no secret outside of its file."""

from __future__ import annotations

import json
import os
import re
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
from tests.infra.environments.environment_copies import (
    copy_environments,
    find_first_port,
    open_local_environment,
)
from tests.infra.environments.secret_search import find_files_with_values
from tests.patience import PATIENCE_S
from tests.platform.security.declared_listeners import find_undeclared, read_sockets

from penstock.infra.environments.outputs import EnvironmentOutputs, parse_outputs
from penstock.infra.kafka_access import kafka_client_config
from penstock.infra.local.certificates import make_certificates
from penstock.infra.terraform import TerraformEvent, TerraformWorkspace
from penstock.infra.terraform.errors import PlanFailedError

pytestmark = pytest.mark.whole
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)

TOPIC = "messages"
REFUSAL_TIMEOUT_S = 15.0
Client = dict[str, str | int]


@pytest.fixture(scope="module")
def events() -> list[TerraformEvent]:
    return []


@pytest.fixture(scope="module")
def workspace(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, events: list[TerraformEvent]
) -> Iterator[TerraformWorkspace]:
    root = tmp_path_factory.mktemp("secured")
    copy_environments(root)
    jars = pytestconfig.rootpath / ".penstock" / "jars"
    workspace = open_local_environment(root, jars, find_first_port(), secured=True, workers=1)
    workspace.apply(workspace.plan(), on_event=events.append)
    yield workspace
    workspace.apply(workspace.plan(destroy=True))


@pytest.fixture(scope="module")
def outputs(workspace: TerraformWorkspace) -> EnvironmentOutputs:
    return parse_outputs(workspace.read_outputs())


def client_config(outputs: EnvironmentOutputs, user: str) -> Client:
    return {**kafka_client_config(outputs.kafka.kafka_access, user), "log_level": 0}


def produce(settings: Client, value: bytes) -> KafkaError | None:
    """Write one record; return the error if it was refused."""
    errors: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 15_000})
    producer.produce(TOPIC, value, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(PATIENCE_S)
    return errors[0]


def test_a_plan_right_after_apply_shows_no_change(
    workspace: TerraformWorkspace, outputs: EnvironmentOutputs
) -> None:
    assert workspace.plan().is_empty
    assert outputs.kafka.security.protocol == "SASL_SSL"
    assert set(outputs.kafka.security.secrets) == {"ingestion", "host", "topics"}


def test_each_user_can_do_its_own_work(outputs: EnvironmentOutputs) -> None:
    topic_admin = AdminClient(client_config(outputs, "topics"))
    topic_admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(PATIENCE_S)
    assert produce(client_config(outputs, "ingestion"), b"message") is None
    reader = Consumer(
        {**client_config(outputs, "host"), "group.id": "penstock", "auto.offset.reset": "earliest"}
    )
    reader.subscribe([TOPIC])
    message = reader.poll(30)
    assert message is not None
    assert message.value() == b"message"
    reader.commit(message, asynchronous=False)
    reader.close()


def test_a_user_cannot_do_the_work_of_another(outputs: EnvironmentOutputs) -> None:
    refused = produce(client_config(outputs, "host"), b"no")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    admin = AdminClient(client_config(outputs, "ingestion"))
    with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
        admin.create_topics([NewTopic("mine", 1)])["mine"].result(30)


def is_refused(settings: Client, code: int) -> bool:
    """Whether a client gets the error code, and no metadata of the cluster."""
    error_codes: set[int] = set()
    admin = AdminClient({**settings, "error_cb": lambda error: error_codes.add(error.code())})
    deadline = time.monotonic() + REFUSAL_TIMEOUT_S
    while code not in error_codes and time.monotonic() < deadline:
        admin.poll(0.1)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.2)
    return code in error_codes


@pytest.mark.parametrize("change", [{"sasl.password": "wrong"}, {"sasl.username": "nobody"}], ids=str)
def test_wrong_credentials_are_refused(outputs: EnvironmentOutputs, change: Client) -> None:
    assert is_refused({**client_config(outputs, "host"), **change}, KafkaError._AUTHENTICATION)


METADATA_REQUEST = struct.pack(">ihhihi", 14, 3, 0, 1, -1, 0)
"""Kafka's Metadata request, version 0, for all topics: the first request of a client."""


@pytest.mark.parametrize("encrypted", [False, True], ids=["no TLS", "no name"])
def test_an_anonymous_connection_is_closed(outputs: EnvironmentOutputs, encrypted: bool) -> None:
    host, _, port = outputs.kafka.brokers[0].partition(":")
    with socket.create_connection((host, int(port)), timeout=REFUSAL_TIMEOUT_S) as plain:
        trusted = ssl.create_default_context(cafile=str(client_config(outputs, "host")["ssl.ca.location"]))
        with trusted.wrap_socket(plain, server_hostname=host) if encrypted else plain as broker:
            broker.sendall(METADATA_REQUEST)
            response = broker.recv(100)
    # TLS ends with an alert of a few bytes; a response of Kafka would contain the correlation id.
    assert struct.pack(">i", 1) not in response
    assert len(response) == (0 if encrypted else 7)


def test_a_client_does_not_trust_another_authority(outputs: EnvironmentOutputs, tmp_path: Path) -> None:
    make_certificates(tmp_path, NOON)
    stranger = {**client_config(outputs, "host"), "ssl.ca.location": str(tmp_path / "ca.pem")}
    assert is_refused(stranger, KafkaError._SSL)


JOB = """
import sys
from pyspark.sql import SparkSession
job = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", False)
job = job.config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m")
print("rows", job.getOrCreate().range(1000).selectExpr("sum(id)").first()[0])
"""


def start_job(outputs: EnvironmentOutputs, *submit_arguments: str) -> subprocess.Popen[str]:
    """Start a job on the Spark of the environment, with further arguments of `spark-submit`."""
    arguments = " ".join([*submit_arguments, "pyspark-shell"])
    return subprocess.Popen(
        [sys.executable, "-c", JOB, outputs.spark.master],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": arguments, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_spark_refuses_a_job_without_the_secret(outputs: EnvironmentOutputs) -> None:
    with start_job(outputs) as stranger:
        assert stranger.stderr is not None
        # The job retries for a minute; the first refusal of the master is enough.
        refused = next((line for line in stranger.stderr if "Failed to connect to master" in line), None)
        processes = [psutil.Process(stranger.pid), *psutil.Process(stranger.pid).children(recursive=True)]
        for process in processes:
            process.kill()
        assert stranger.stdout is not None
        assert (refused is not None, stranger.stdout.read()) == (True, "")


def test_spark_accepts_a_job_with_the_secret(outputs: EnvironmentOutputs) -> None:
    properties = Path(outputs.spark.secret).with_name("worker.properties")
    with start_job(outputs, "--properties-file", str(properties)) as job:
        stdout, stderr = job.communicate(timeout=120)
    assert "rows 499500" in stdout, stderr[-2000:]


def test_every_listening_port_is_declared(workspace: TerraformWorkspace, outputs: EnvironmentOutputs) -> None:
    known_ports = {"first_port": int(outputs.kafka.brokers[0].rpartition(":")[2]) - 1}
    root = workspace.work_directory.parent
    records = {path.stem: path for path in (*root.rglob("broker-*.json"), *root.rglob("spark-*.json"))}
    pids = {name: json.loads(path.read_text("utf-8"))["pid"] for name, path in records.items()}
    assert len(pids) == 5
    undeclared = {
        name: find_undeclared("env local", re.sub(r"-\d+$", "", name), pid, known_ports)
        for name, pid in pids.items()
    }
    assert undeclared == {name: [] for name in pids}
    ports = {socket.port - known_ports["first_port"] for socket in read_sockets(pids["spark-master"])}
    assert ports == {30, 31}, "without the REST server, which asks for no secret"


def test_no_secret_is_outside_of_its_file(
    workspace: TerraformWorkspace, outputs: EnvironmentOutputs, events: list[TerraformEvent]
) -> None:
    """Search every file, event and command line for every secret."""
    files = [Path(path) for path in outputs.kafka.security.secrets.values()] + [Path(outputs.spark.secret)]
    values = {path.read_bytes() for path in files}
    assert len(values) == 4
    plan = workspace.plan()
    root = workspace.work_directory.parent
    secret_files = {*files, *Path(outputs.spark.secret).parent.glob("*.properties")}
    searched = [path for path in root.rglob("*") if path.is_file() and path not in secret_files]
    assert any(path.name == "terraform.tfstate" for path in searched)
    assert any(path.suffix == ".log" for path in searched)
    assert any(path.suffix == ".tfplan" for path in searched)
    assert find_files_with_values(searched, values) == []
    shown = f"{plan!r} {events!r} {outputs!r}".encode()
    lines = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, check=True).stdout
    assert not [value for value in values if value in shown or value in lines]


def test_secrets_and_keys_are_readable_by_their_owner_only(outputs: EnvironmentOutputs) -> None:
    private_files = [Path(path) for path in outputs.kafka.security.secrets.values()] + [
        Path(outputs.spark.secret)
    ]
    private_files += list(Path(outputs.kafka.security.ca).parent.glob("*.key"))
    private_files += list(Path(outputs.spark.secret).parent.glob("*.properties"))
    assert len(private_files) == 7
    assert {stat.S_IMODE(path.stat().st_mode) for path in private_files} == {0o600}


def test_a_secured_cluster_cannot_be_made_open(workspace: TerraformWorkspace) -> None:
    import dataclasses

    opened = dataclasses.replace(workspace, variables={**workspace.variables, "secured": False})
    with pytest.raises(PlanFailedError, match="Destroy it first"):
        opened.plan()
