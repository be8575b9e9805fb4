"""The compose file: its form, and what holds for every service in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from tests.docker.compose_model import Compose

from penstock.platform.settings import Settings

DOCKER = Path(__file__).parents[2] / "docker"
ENDS = {"streams", "topics"}
"""Done when they end: they need no health check."""
FEEDS = {"feed"}
"""They listen nowhere: that they run is all that can be asked."""


def test_it_is_the_whole_platform(compose: Compose) -> None:
    assert set(compose.services) == {
        *("kafka-1", "kafka-2", "kafka-3", "spark-master", "spark-worker", "postgres"),
        *("code", "webserver", "daemon", "topics", "streams", "host", "feed"),
    }
    worker = compose.services["spark-worker"].deploy
    assert worker is not None
    assert worker.replicas == 2


def test_it_has_the_form_that_the_format_publishes() -> None:
    """The format's own schema; ours, which the other tests read the file with, is narrower."""
    checker = str(Path(sys.executable).with_name("check-jsonschema"))
    words = ["--builtin-schema", "vendor.compose-spec", str(DOCKER / "compose.yaml")]
    said = subprocess.run([checker, *words], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_nothing_but_shared_parts_is_unknown_to_the_format(compose: Compose) -> None:
    assert all(name.startswith("x-") for name in compose.model_extra or {})


def test_every_service_that_stays_has_a_health_check(compose: Compose) -> None:
    without = {name for name, service in compose.services.items() if service.healthcheck is None}
    assert without == ENDS | FEEDS


def test_what_a_service_waits_for_is_there_and_can_become_so(compose: Compose) -> None:
    for name, service in compose.services.items():
        for other, dependency in service.depends_on.items():
            needed = compose.services[other]
            if dependency.condition == "service_healthy":
                assert needed.healthcheck is not None, f"{name} waits for {other}"
            else:
                assert other in ENDS, f"{name} waits for {other}"


def test_our_containers_may_do_as_little_as_possible(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert "no-new-privileges:true" in service.security_opt, name
        if service.build is not None:
            assert service.read_only, name
            assert service.cap_drop == ["ALL"], name
            assert service.init, name


def test_only_dagsters_pages_are_published_and_only_to_this_machine(compose: Compose) -> None:
    published = {name: service.ports for name, service in compose.services.items() if service.ports}
    assert published == {"webserver": ["127.0.0.1:3000:3000"]}


def test_volumes_and_secrets_are_declared_and_used(compose: Compose) -> None:
    mounted = {
        mount.split(":")[0]
        for service in compose.services.values()
        for mount in service.volumes
        if mount[0] != "."
    }
    used = {secret for service in compose.services.values() for secret in service.secrets}
    assert mounted == set(compose.volumes)
    assert used == set(compose.secrets)


def test_the_streams_of_a_fresh_stack_run_here_too(compose: Compose) -> None:
    command = compose.services["streams"].command or []
    assert tuple(command[command.index("start") + 1 : command.index("--wait")]) == (
        Settings.model_fields["streams"].default
    )


def test_all_that_is_ours_has_the_same_home(compose: Compose) -> None:
    """The registry of schemas is in it: who registers them and who reads by them must mean the same one."""
    ours = {name for name, service in compose.services.items() if "PENSTOCK_HOME" in service.environment}
    homes = {
        name for name, service in compose.services.items() if service.volumes == ["home:/var/lib/penstock"]
    }
    assert homes == {"topics", "feed", "host", "code", "spark-worker"}
    assert ours - homes == {"streams"}, "it writes to the control store alone"


def test_what_java_unpacks_into_tmp_can_be_loaded_from_there(compose: Compose) -> None:
    """An engine's tmpfs is noexec where nothing else is said; zstd and snappy come as libraries to be unpacked."""
    for name, service in compose.services.items():
        assert service.tmpfs == ([] if name == "postgres" else ["/tmp:exec"]), name


def test_whoever_runs_jobs_can_start_spark(compose: Compose) -> None:
    """Runs are children of the code server: they need the host's Java, jars and packages, and its places."""
    code, host = compose.services["code"], compose.services["host"]
    assert code.image == host.image == "penstock/host"
    told = {
        name: value for name, value in host.environment.items() if not name.startswith("PENSTOCK_SPARK__")
    }
    assert told.items() <= code.environment.items()


def test_no_secret_is_in_the_file(compose: Compose) -> None:
    text = (DOCKER / "compose.yaml").read_text("utf-8")
    assert "PASSWORD:" not in text.replace("_FILE:", "")
    for service in compose.services.values():
        for value in service.environment.values():
            assert "@" not in value or ":" not in value.split("//")[1].split("@")[0], value


def test_every_image_is_built_from_a_file_that_is_there(compose: Compose) -> None:
    built = {service.build.dockerfile for service in compose.services.values() if service.build}
    assert built == {f"docker/{path.name}" for path in DOCKER.glob("*.Dockerfile")}


def test_brokers_agree_on_who_votes(compose: Compose) -> None:
    commands = [compose.services[f"kafka-{node}"].command or [] for node in (1, 2, 3)]
    voters = {command[command.index("--voters") + 1] for command in commands}
    assert voters == {"1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"}
    assert len({command[command.index("--cluster") + 1] for command in commands}) == 1


def test_dagster_finds_its_code_where_the_code_server_listens(compose: Compose) -> None:
    workspace = yaml.safe_load((DOCKER / "dagster" / "workspace.yaml").read_text("utf-8"))
    server = workspace["load_from"][0]["grpc_server"]
    environment = compose.services["webserver"].environment
    assert environment[server["host"]["env"]] == "code"
    command = compose.services["code"].command or []
    assert command[command.index("-p") + 1] == environment[server["port"]["env"]]
    assert command[command.index("--location-name") + 1] == server["location_name"]


def test_dagster_and_the_control_store_have_a_database_each(compose: Compose) -> None:
    environment = compose.services["code"].environment
    assert environment["PENSTOCK_CONTROL_URL"].rpartition("/")[2] == "penstock"
    assert environment["PENSTOCK_DAGSTER__STORAGE_URL"].rpartition("/")[2] == "dagster"
    assert "CREATE DATABASE dagster;" in (DOCKER / "postgres" / "dagster.sql").read_text("utf-8")
    assert "./postgres:/docker-entrypoint-initdb.d:ro" in compose.services["postgres"].volumes
