"""What an environment costs, reckoned again by hand."""

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


def cost(kind: str, values: dict[str, object], usage: MonthlyUsage | None = None) -> Decimal:
    return estimate_cost([PlannedResource("it", kind, values)], usage or MonthlyUsage(), PRICES).monthly_usd


def test_brokers_cost_their_hours_and_their_disks() -> None:
    assert cost("aws_msk_cluster", KAFKA) == Decimal("1095.00") + Decimal("30.00")


def test_spark_costs_only_while_it_is_busy() -> None:
    worker = {"cpu": "2 vCPU", "memory": "8 GB"}
    capacity = {
        "initial_capacity_type": "Executor",
        "initial_capacity_config": [{"worker_count": 2, "worker_configuration": [worker]}],
    }
    values: dict[str, object] = {"initial_capacity": [capacity]}
    assert cost("aws_emrserverless_application", values, MonthlyUsage(spark_hours=100)) == Decimal("36.00")
    assert cost("aws_emrserverless_application", values, MonthlyUsage(spark_hours=0)) == 0


def test_a_database_in_two_zones_costs_its_own_price() -> None:
    values = {"multi_az": True, "instance_class": "db", "allocated_storage": 20}
    assert cost("aws_db_instance", values) == Decimal("146.00") + Decimal("6.00")


def test_an_endpoint_costs_in_each_zone_and_a_gateway_nothing() -> None:
    assert cost("aws_vpc_endpoint", {"vpc_endpoint_type": "Interface", "subnet_ids": ["a", "b"]}) == Decimal(
        "14.60"
    )
    assert cost("aws_vpc_endpoint", {"vpc_endpoint_type": "Gateway"}) == 0


def test_lines_come_dearest_first_and_add_up() -> None:
    resources = [
        PlannedResource("key", "aws_kms_key", {}),
        PlannedResource("kafka", "aws_msk_cluster", KAFKA),
        PlannedResource("nothing", "aws_vpc", {}),
        PlannedResource("task", "aws_ecs_task_definition", {"cpu": "512", "memory": "2048"}),
    ]
    found = estimate_cost(resources, MonthlyUsage(), PRICES)
    assert [item.address for item in found.items] == ["kafka", "kafka", "task", "key"]
    assert found.monthly_usd == sum(item.monthly_usd for item in found.items) == Decimal("1147.90")
    assert (found.region, found.price_date) == ("nowhere-1", "2026-01-01")


def test_a_size_without_a_price_is_named() -> None:
    group = {"instance_type": "huge", "storage_info": [{"ebs_storage_info": [{"volume_size": 1}]}]}
    with pytest.raises(PriceTableError, match="kafka/broker_hour/huge"):
        cost("aws_msk_cluster", {"number_of_broker_nodes": 3, "broker_node_group_info": [group]})


def test_the_shipped_table_has_a_price_for_every_default() -> None:
    prices = read_price_table()
    assert prices["kafka/broker_hour/kafka.m7g.large"] > 0
    assert (
        prices["database/two_zones/instance_hour/db.t4g.medium"]
        > prices["database/one_zone/instance_hour/db.t4g.medium"]
    )


def test_every_group_of_prices_says_where_it_is_from_and_whether_it_was_compared() -> None:
    document = yaml.safe_load(PRICES_FILE.read_text("utf-8"))
    assert document["sources"].keys() == document["prices"].keys()
    for group, source in document["sources"].items():
        assert source.keys() == {"page", "compared", "with"}, group
        assert source["page"].startswith("https://aws.amazon.com/"), group
        assert source["compared"] == "never" or source["compared"] >= document["date"], group


def test_an_estimate_says_which_prices_nobody_compared_and_what_it_leaves_out() -> None:
    found = estimate_cost([], MonthlyUsage(), read_price_table())
    never = {
        g
        for g, s in yaml.safe_load(PRICES_FILE.read_text("utf-8"))["sources"].items()
        if s["compared"] == "never"
    }
    assert set(found.unverified_prices) == never
    assert never == {"spark", "warehouse", "key_month", "secret_month", "alarm_month"}
    assert any("file system" in one for one in found.excluded_costs)


def test_a_table_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("- 1\n")
    with pytest.raises(PriceTableError, match="cannot be read"):
        read_price_table(tmp_path / "prices.yaml")
