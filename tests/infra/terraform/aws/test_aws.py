"""The environment `aws`, applied, changed and destroyed: real Terraform, real provider, moto.

The tests are one story and run in their order; each states what holds at its point.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environments.outputs import parse_outputs, platform_settings
from penstock.infra.environments.settings_file import apply_settings
from penstock.infra.terraform import PlanAction, TerraformPlan, TerraformWorkspace
from penstock.infra.terraform.errors import PlanFailedError
from penstock.platform.settings import Settings, load_settings

pytestmark = [pytest.mark.whole, pytest.mark.timeout(900)]

Environment = Callable[..., TerraformWorkspace]


def values(plan: TerraformPlan, kind: str) -> list[dict[str, Any]]:
    return [resource.values for resource in plan.resources if resource.kind == kind]


def statements(plan: TerraformPlan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every statement of every policy, of roles, keys, buckets and topics alike."""
    for resource in plan.resources:
        for name in ("policy", "assume_role_policy"):
            text = resource.values.get(name)
            if text and resource.kind != "aws_ecr_lifecycle_policy":
                for statement in json.loads(text)["Statement"]:
                    yield resource.address, statement


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.fixture(scope="module")
def first_plan(environment: Environment) -> TerraformPlan:
    """The plan of an environment that is not there yet."""
    return environment().plan()


@pytest.fixture(scope="module")
def applied(environment: Environment, first_plan: TerraformPlan) -> TerraformWorkspace:
    workspace = environment()
    workspace.apply(first_plan)
    return workspace


@pytest.fixture(scope="module")
def settled(applied: TerraformWorkspace) -> TerraformPlan:
    """The plan right after the apply: it knows every value."""
    return applied.plan()


def test_a_first_plan_only_creates(first_plan: TerraformPlan) -> None:
    creating = [change for change in first_plan.changes if change.has_effect]
    assert first_plan.count_actions(PlanAction.CREATE) == len(creating) > 80


def test_a_plan_right_after_apply_shows_no_change(settled: TerraformPlan) -> None:
    assert settled.is_empty, [(c.address, c.action, c.values) for c in settled.changes]


def test_outputs_have_the_form_of_every_environment(applied: TerraformWorkspace) -> None:
    outputs = {name: output.value for name, output in applied.read_outputs().items()}
    assert outputs["kafka"]["brokers"] == [
        f"b-{n}.penstock.kafka.eu-west-1.amazonaws.com:9096" for n in (1, 2, 3)
    ]
    assert outputs["spark"]["kind"] == "emr-serverless"
    assert outputs["warehouse"] == {"root": "s3://penstock-warehouse-123456789012-eu-west-1/warehouse"}
    assert "@" in outputs["control_store"]["url"]
    assert outputs["secrets"]["kafka"]["host"] == "AmazonMSK_penstock_host"
    assert outputs["secrets"]["database"] == {
        "dagster": "penstock/database/dagster",
        "penstock": "penstock/database/penstock",
    }


def test_outputs_give_all_settings_that_the_platform_needs_there(
    applied: TerraformWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What `penstock env use aws` writes, read as every command reads it, and used as a client uses it."""
    forget_settings(monkeypatch)
    monkeypatch.setenv("PENSTOCK_ROOT", str(tmp_path))
    text = apply_settings("", platform_settings(parse_outputs(applied.read_outputs())), "aws")
    (tmp_path / "penstock.toml").write_text(text)
    settings = load_settings().settings
    assert settings.spark.master == "local[*]"
    assert settings.control_secret == "env:CONTROL_STORE"
    assert settings.kafka.layout == "production"
    for user in ("ingestion", "host", "topics"):
        monkeypatch.setenv(f"KAFKA_{user.upper()}", json.dumps({"username": user, "password": f"of {user}"}))
        client = settings.kafka.client_config(user)
        assert (client["sasl.username"], client["sasl.password"]) == (user, f"of {user}")
        assert client["sasl.mechanism"] == "SCRAM-SHA-512"


def containers(plan: TerraformPlan) -> dict[str, dict[str, Any]]:
    """Every task's container, by its service's name."""
    found = [
        container
        for definition in values(plan, "aws_ecs_task_definition")
        for container in json.loads(definition["container_definitions"])
    ]
    return {container["name"]: container for container in found}


def forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)


def told_settings(container: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The platform's settings as the container's variables make them."""
    forget_settings(monkeypatch)
    for one in container["environment"]:
        monkeypatch.setenv(one["name"], one["value"])
    loaded = load_settings()
    assert loaded.unknown_warnings == ()
    return loaded.settings


def test_host_and_dagsters_code_are_told_by_settings_that_the_platform_has(
    settled: TerraformPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = containers(settled)
    assert found.keys() == {"host", "code", "webserver", "daemon"}
    for name in ("host", "code"):
        settings = told_settings(found[name], monkeypatch)
        assert settings.kafka.bootstrap == ",".join(
            f"b-{n}.penstock.kafka.eu-west-1.amazonaws.com:9096" for n in (1, 2, 3)
        )
        assert settings.kafka.layout == "production"
        assert settings.warehouse.startswith("s3://penstock-warehouse-")
        assert settings.control_url.startswith("postgresql+psycopg://penstock@")
        assert "/penstock?sslmode=verify-full&" in settings.control_url
        assert settings.home == Path("/var/lib/penstock")
    for name in ("code", "webserver", "daemon"):
        storage = str(told_settings(found[name], monkeypatch).dagster.storage_url)
        assert storage.startswith("postgresql://dagster@")
        assert "/dagster?sslmode=verify-full&" in storage


def test_host_and_runs_share_a_home_that_outlives_their_tasks(settled: TerraformPlan) -> None:
    (system,), (door,) = values(settled, "aws_efs_file_system"), values(settled, "aws_efs_access_point")
    for definition in values(settled, "aws_ecs_task_definition"):
        (container,) = json.loads(definition["container_definitions"])
        mounted = {mount["sourceVolume"]: mount["containerPath"] for mount in container["mountPoints"]}
        shared = [volume for volume in definition["volume"] if volume["name"] == "home"]
        if container["name"] in ("webserver", "daemon"):
            assert (mounted, shared) == ({"tmp": "/tmp"}, [])
            continue
        assert mounted == {"tmp": "/tmp", "home": "/var/lib/penstock"}
        (how,) = shared[0]["efs_volume_configuration"]
        assert (how["file_system_id"], how["transit_encryption"]) == (system["id"], "ENABLED")
        assert how["authorization_config"] == [{"access_point_id": door["id"], "iam": "ENABLED"}]


SECRETS = {
    "host": {"CONTROL_STORE", "KAFKA_HOST"},
    "code": {"CONTROL_STORE", "PGPASSWORD", "KAFKA_HOST", "KAFKA_INGESTION", "KAFKA_TOPICS"},
    "webserver": {"PGPASSWORD"},
    "daemon": {"PGPASSWORD"},
}


def test_a_service_is_handed_its_own_secrets_and_may_hand_over_no_other(settled: TerraformPlan) -> None:
    found = containers(settled)
    named = {name: {one["name"] for one in container["secrets"]} for name, container in found.items()}
    assert named == SECRETS
    policies = {policy["role"]: policy["policy"] for policy in values(settled, "aws_iam_role_policy")}
    for name, container in found.items():
        handed = {arn(one["valueFrom"]) for one in container["secrets"]}
        allowed = {
            resource
            for statement in json.loads(policies[f"penstock-start-{name}"])["Statement"]
            if statement["Action"] == "secretsmanager:GetSecretValue"
            for resource in as_list(statement["Resource"])
        }
        assert allowed == handed


def arn(place: str) -> str:
    """A secret's ARN out of a place, which may name a key inside it."""
    return ":".join(place.split(":")[:7])


def test_each_service_wears_a_group_of_its_own(settled: TerraformPlan) -> None:
    groups = {group["id"]: group["name"] for group in values(settled, "aws_security_group")}
    worn = {
        service["name"]: [groups[one] for one in service["network_configuration"][0]["security_groups"]]
        for service in values(settled, "aws_ecs_service")
    }
    assert worn == {name: [f"penstock-{name}"] for name in ("host", "code", "webserver", "daemon")}


def test_nothing_is_started_before_its_secrets_have_values(settled: TerraformPlan) -> None:
    assert {service["desired_count"] for service in values(settled, "aws_ecs_service")} == {0}


def test_no_policy_allows_a_wildcard_action(settled: TerraformPlan) -> None:
    found = list(statements(settled))
    assert len(found) > 20
    for address, statement in found:
        if statement["Effect"] == "Allow":
            assert not [a for a in as_list(statement["Action"]) if "*" in a], address
            assert statement.get("Principal") != "*", address
            everybody = statement.get("Principal", {}).get("AWS") == "*"
            assert not everybody or "aws_vpc_endpoint" in address, address


def test_nothing_is_public(settled: TerraformPlan) -> None:
    rules = values(settled, "aws_vpc_security_group_ingress_rule")
    assert rules
    assert not [rule for rule in rules if rule["cidr_ipv4"] or rule["cidr_ipv6"]]
    assert not [subnet for subnet in values(settled, "aws_subnet") if subnet["map_public_ip_on_launch"]]
    assert not values(settled, "aws_internet_gateway")
    assert not values(settled, "aws_nat_gateway")
    assert not values(settled, "aws_route")
    assert [database["publicly_accessible"] for database in values(settled, "aws_db_instance")] == [False]
    blocks = values(settled, "aws_s3_bucket_public_access_block")
    assert len(blocks) == len(values(settled, "aws_s3_bucket"))
    assert all(
        block[name] for block in blocks for name in block if name.startswith(("block", "ignore", "res"))
    )


def test_everything_is_encrypted_with_the_customers_key(settled: TerraformPlan) -> None:
    (key,) = values(settled, "aws_kms_key")
    own = key["arn"]
    (cluster,) = values(settled, "aws_msk_cluster")
    assert cluster["encryption_info"][0]["encryption_at_rest_kms_key_arn"] == own
    (database,) = values(settled, "aws_db_instance")
    assert database["storage_encrypted"]
    assert {database["kms_key_id"], database["performance_insights_kms_key_id"]} == {own}
    assert {group["kms_key_id"] for group in values(settled, "aws_cloudwatch_log_group")} == {own}
    assert {secret["kms_key_id"] for secret in values(settled, "aws_secretsmanager_secret")} == {own}
    (home,) = values(settled, "aws_efs_file_system")
    assert (home["encrypted"], home["kms_key_id"]) == (True, own)
    assert {topic["kms_master_key_id"] for topic in values(settled, "aws_sns_topic")} == {own}


def test_everything_says_which_environment_it_belongs_to(settled: TerraformPlan) -> None:
    for resource in settled.resources:
        tags = resource.values.get("tags_all")
        assert tags is None or tags.get("environment") == "penstock", resource.address


def test_the_state_is_in_the_bucket_and_holds_no_password(applied: TerraformWorkspace, aws: Any) -> None:
    import boto3

    client = boto3.client(
        "s3", endpoint_url=aws[1], region_name="eu-west-1", aws_access_key_id="t", aws_secret_access_key="t"
    )
    state = client.get_object(Bucket="penstock-states", Key="penstock.tfstate")["Body"].read().decode()
    passwords = [
        instance["attributes"].get("password")
        for resource in json.loads(state)["resources"]
        for instance in resource["instances"]
    ]
    assert set(passwords) == {None}
    assert "secret_string" not in state


def test_growing_changes_in_place(applied: TerraformWorkspace, environment: Environment) -> None:
    larger = environment(brokers=6, broker_storage_gb=300, workers=3, monthly_usd=3000)
    plan = larger.plan()
    changes = {(change.kind, change.action) for change in plan.changes if change.has_effect}
    assert changes == {
        ("aws_msk_cluster", PlanAction.UPDATE),
        ("aws_emrserverless_application", PlanAction.UPDATE),
        ("aws_budgets_budget", PlanAction.UPDATE),
        ("aws_cloudwatch_metric_alarm", PlanAction.CREATE),
    }
    assert plan.count_actions(PlanAction.CREATE) == 3, "each new broker's disk is watched"
    larger.apply(plan)
    again = larger.plan()
    assert again.is_empty
    (cluster,) = values(again, "aws_msk_cluster")
    assert cluster["number_of_broker_nodes"] == 6


def test_users_are_given_to_kafka_and_services_start_once_their_secrets_have_values(
    applied: TerraformWorkspace, environment: Environment
) -> None:
    filled = environment(
        brokers=6,
        broker_storage_gb=300,
        workers=3,
        monthly_usd=3000,
        secrets_filled=True,
    )
    plan = filled.plan()
    assert {change.kind for change in plan.changes if change.has_effect} == {
        "aws_msk_scram_secret_association",
        "aws_ecs_service",
    }
    filled.apply(plan)
    again = filled.plan()
    assert again.is_empty
    assert {service["desired_count"] for service in values(again, "aws_ecs_service")} == {1}


def test_who_logs_in_by_role_gets_no_password_and_starts_no_service_of_ours(environment: Environment) -> None:
    plan = environment(kafka_authentication="iam", secrets_filled=True).plan()
    assert {service["desired_count"] for service in values(plan, "aws_ecs_service")} == {0}
    for container in values(plan, "aws_ecs_task_definition"):
        assert "KAFKA_" not in str(container["container_definitions"]).replace("PENSTOCK_KAFKA__", "")


def test_a_bad_name_is_refused_before_anything_is_asked(environment: Environment) -> None:
    with pytest.raises(PlanFailedError, match="3 to 21 small letters"):
        environment(name="Not_A_Name").plan()


def test_destroy_leaves_nothing(environment: Environment, aws: Any) -> None:
    workspace = environment(secrets_filled=True)
    workspace.apply(workspace.plan(destroy=True))
    assert workspace.list_resources() == ()
    from moto.backends import get_backend

    assert not get_backend("kafka")["123456789012"]["eu-west-1"].clusters
    applications = get_backend("emr-serverless")["123456789012"]["eu-west-1"].applications.values()
    assert {application.state for application in applications} == {"TERMINATED"}
    assert set(get_backend("s3")["123456789012"]["aws"].buckets) == {"penstock-states"}
    assert not get_backend("rds")["123456789012"]["eu-west-1"].databases
