"""The estimated monthly cost of an environment, compared with figures computed by hand."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from penstock.infra.environments.cost import PRICES_FILE as PRICES_FILE
from penstock.infra.environments.cost import MonthlyUsage, PriceTable, estimate_cost, read_price_table
from penstock.infra.environments.errors import PriceTableError
from penstock.infra.terraform import PlannedResource

PRICES = PriceTable(
    "nowhere-1",
    "2026-01-01",
    {
        "kafka": {"broker_hour": {"small": 0.5}, "storage_gb_month": 0.1},
        "spark": {"core_hour": 0.05, "gb_hour": 0.01},
        "database": {"two_zones": {"instance_hour": {"db": 0.2}, "storage_gb_month": 0.3}},
        "container": {"core_hour": 0.04, "gb_hour": 0.005},
        "network": {"endpoint_hour": 0.01},
        "warehouse": {"gb_month": 0.02},
        "key_month": 1,
    },
)
KAFKA = {
    "number_of_broker_nodes": 3,
    "broker_node_group_info": [
        {"instance_type": "small", "storage_info": [{"ebs_storage_info": [{"volume_size": 100}]}]}
    ],
}


def estimate_monthly_usd(kind: str, values: dict[str, object], usage: MonthlyUsage | None = None) -> Decimal:
    return estimate_cost([PlannedResource("it", kind, values)], usage or MonthlyUsage(), PRICES).monthly_usd


def test_brokers_are_charged_for_hours_and_storage() -> None:
    assert estimate_monthly_usd("aws_msk_cluster", KAFKA) == Decimal("1095.00") + Decimal("30.00")


def test_spark_is_charged_only_for_hours_of_use() -> None:
    worker = {"cpu": "2 vCPU", "memory": "8 GB"}
    capacity = {
        "initial_capacity_type": "Executor",
        "initial_capacity_config": [{"worker_count": 2, "worker_configuration": [worker]}],
    }
    values: dict[str, object] = {"initial_capacity": [capacity]}
    assert estimate_monthly_usd(
        "aws_emrserverless_application", values, MonthlyUsage(spark_hours=100)
    ) == Decimal("36.00")
    assert estimate_monthly_usd("aws_emrserverless_application", values, MonthlyUsage(spark_hours=0)) == 0


def test_a_database_in_two_zones_has_its_own_price() -> None:
    values = {"multi_az": True, "instance_class": "db", "allocated_storage": 20}
    assert estimate_monthly_usd("aws_db_instance", values) == Decimal("146.00") + Decimal("6.00")


def test_an_endpoint_is_charged_per_zone_and_a_gateway_is_free() -> None:
    assert estimate_monthly_usd(
        "aws_vpc_endpoint", {"vpc_endpoint_type": "Interface", "subnet_ids": ["a", "b"]}
    ) == Decimal("14.60")
    assert estimate_monthly_usd("aws_vpc_endpoint", {"vpc_endpoint_type": "Gateway"}) == 0


def test_items_are_sorted_by_cost_and_add_up_to_the_total() -> None:
    resources = [
        PlannedResource("key", "aws_kms_key", {}),
        PlannedResource("kafka", "aws_msk_cluster", KAFKA),
        PlannedResource("nothing", "aws_vpc", {}),
        PlannedResource("task", "aws_ecs_task_definition", {"cpu": "512", "memory": "2048"}),
    ]
    estimate = estimate_cost(resources, MonthlyUsage(), PRICES)
    assert [item.address for item in estimate.items] == ["kafka", "kafka", "task", "key"]
    assert estimate.monthly_usd == sum(item.monthly_usd for item in estimate.items) == Decimal("1147.90")
    assert (estimate.region, estimate.price_date) == ("nowhere-1", "2026-01-01")


def test_a_missing_price_is_named() -> None:
    group = {"instance_type": "huge", "storage_info": [{"ebs_storage_info": [{"volume_size": 1}]}]}
    with pytest.raises(PriceTableError, match="kafka/broker_hour/huge"):
        estimate_monthly_usd(
            "aws_msk_cluster", {"number_of_broker_nodes": 3, "broker_node_group_info": [group]}
        )


def test_the_shipped_table_has_a_price_for_every_default() -> None:
    prices = read_price_table()
    assert prices["kafka/broker_hour/kafka.m7g.large"] > 0
    assert (
        prices["database/two_zones/instance_hour/db.t4g.medium"]
        > prices["database/one_zone/instance_hour/db.t4g.medium"]
    )


def test_every_price_group_names_its_source_and_verification() -> None:
    document = yaml.safe_load(PRICES_FILE.read_text("utf-8"))
    assert document["sources"].keys() == document["prices"].keys()
    for group, source in document["sources"].items():
        assert source.keys() == {"page", "compared", "with"}, group
        assert source["page"].startswith("https://aws.amazon.com/"), group
        assert source["compared"] == "never" or source["compared"] >= document["date"], group


def test_an_estimate_lists_unverified_prices_and_excluded_costs() -> None:
    estimate = estimate_cost([], MonthlyUsage(), read_price_table())
    unverified = {
        group
        for group, source in yaml.safe_load(PRICES_FILE.read_text("utf-8"))["sources"].items()
        if source["compared"] == "never"
    }
    assert set(estimate.unverified_prices) == unverified
    assert unverified == {"spark", "warehouse", "key_month", "secret_month", "alarm_month"}
    assert any("file system" in cost for cost in estimate.excluded_costs)


def test_a_malformed_price_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("- 1\n")
    with pytest.raises(PriceTableError, match="cannot be read"):
        read_price_table(tmp_path / "prices.yaml")
