"""What an environment costs a month, by arithmetic: resources of a plan times a table of prices.

An estimate, not a bill: it knows list prices of one region at one date, no discounts and no free tier, and
takes from `MonthlyUsage` what no plan contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from penstock.infra.environments.errors import PriceTableError
from penstock.infra.terraform import PlannedResource

PRICES_FILE = Path(__file__).with_name("prices.yaml")
HOURS_PER_MONTH = Decimal(730)
"""Hours of a month, as used by AWS."""


@dataclass(frozen=True)
class MonthlyUsage:
    """Usage per month that a plan does not contain: busy hours of each Spark worker, stored and logged GB."""

    spark_hours: int = 730
    warehouse_gb: int = 500
    log_gb: int = 20


@dataclass(frozen=True)
class CostItem:
    """One line of an estimate."""

    address: str
    description: str
    monthly_usd: Decimal


@dataclass(frozen=True)
class CostEstimate:
    """The items, most expensive first, and the prices that they are based on."""

    items: tuple[CostItem, ...]
    region: str
    price_date: str
    usage: MonthlyUsage
    unverified_prices: tuple[str, ...] = ()
    excluded_costs: tuple[str, ...] = ()

    @property
    def monthly_usd(self) -> Decimal:
        """US dollars a month."""
        return sum((item.monthly_usd for item in self.items), Decimal(0))


@dataclass(frozen=True)
class PriceTable:
    """A table of prices in US dollars.

    `unverified_prices` names groups that were not compared with a public price list, `excluded_costs` costs without
    a price here.
    """

    region: str
    price_date: str
    table: Mapping[str, Any]
    unverified_prices: tuple[str, ...] = ()
    excluded_costs: tuple[str, ...] = ()

    def __getitem__(self, path: str) -> Decimal:
        price: Any = self.table
        for name in path.split("/"):
            if not isinstance(price, Mapping) or name not in price:
                raise PriceTableError(f"{PRICES_FILE.name} has no price for {path}. Add it with its date.")
            price = price[name]
        return Decimal(str(price))


def read_price_table(path: Path = PRICES_FILE) -> PriceTable:
    """Read a table of prices."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
        unverified_prices = tuple(
            name for name, source in document["sources"].items() if source["compared"] == "never"
        )
        excluded_costs = tuple(document["not_counted"])
        return PriceTable(
            document["region"], str(document["date"]), document["prices"], unverified_prices, excluded_costs
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise PriceTableError(f"The price table {path} cannot be read: {error}.") from error


def estimate_cost(
    resources: Iterable[PlannedResource], usage: MonthlyUsage, prices: PriceTable
) -> CostEstimate:
    """Estimate the monthly cost of these resources; resources without a price are left out."""
    items = [item for resource in resources for item in _price_resource(resource, usage, prices)]
    items.sort(key=lambda item: (-item.monthly_usd, item.address))
    return CostEstimate(
        tuple(items), prices.region, prices.price_date, usage, prices.unverified_prices, prices.excluded_costs
    )


def _price_resource(resource: PlannedResource, usage: MonthlyUsage, prices: PriceTable) -> Iterator[CostItem]:
    price_rule = _PRICE_RULES.get(resource.kind)
    if price_rule:
        for description, monthly_usd in price_rule(resource.values, usage, prices):
            yield CostItem(resource.address, description, monthly_usd.quantize(Decimal("0.01")))


ResourceValues = Mapping[str, Any]
CostLines = Iterator[tuple[str, Decimal]]


def _price_kafka(values: ResourceValues, _usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    brokers = Decimal(values["number_of_broker_nodes"])
    broker_group = values["broker_node_group_info"][0]
    instance_type, disk_gb = (
        broker_group["instance_type"],
        Decimal(broker_group["storage_info"][0]["ebs_storage_info"][0]["volume_size"]),
    )
    yield (
        f"{brokers} brokers {instance_type}",
        brokers * HOURS_PER_MONTH * prices[f"kafka/broker_hour/{instance_type}"],
    )
    yield f"{brokers} disks of {disk_gb} GB", brokers * disk_gb * prices["kafka/storage_gb_month"]


def _price_spark(values: ResourceValues, usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    for capacity in values["initial_capacity"]:
        config = capacity["initial_capacity_config"][0]
        worker = config["worker_configuration"][0]
        count, hours = Decimal(config["worker_count"]), Decimal(usage.spark_hours)
        cores, memory_gb = _parse_number(worker["cpu"]), _parse_number(worker["memory"])
        hourly = cores * prices["spark/core_hour"] + memory_gb * prices["spark/gb_hour"]
        yield f"{count} {capacity['initial_capacity_type'].lower()} for {hours} h", count * hours * hourly


def _price_database(values: ResourceValues, _usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    zones = "two_zones" if values["multi_az"] else "one_zone"
    instance_type, disk_gb = values["instance_class"], Decimal(values["allocated_storage"])
    yield (
        f"{instance_type} in {zones.replace('_', ' ')}",
        HOURS_PER_MONTH * prices[f"database/{zones}/instance_hour/{instance_type}"],
    )
    yield f"{disk_gb} GB", disk_gb * prices[f"database/{zones}/storage_gb_month"]


def _price_task(values: ResourceValues, _usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    cores, memory_gb = Decimal(values["cpu"]) / 1024, Decimal(values["memory"]) / 1024
    hourly = cores * prices["container/core_hour"] + memory_gb * prices["container/gb_hour"]
    yield f"{cores.normalize():f} cores, {memory_gb.normalize():f} GB", HOURS_PER_MONTH * hourly


def _price_endpoint(values: ResourceValues, _usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    if values["vpc_endpoint_type"] == "Interface":
        zone_count = Decimal(len(values.get("subnet_ids") or _ASSUMED_ZONES))
        yield (
            f"an address in {zone_count} zones",
            zone_count * HOURS_PER_MONTH * prices["network/endpoint_hour"],
        )


_ASSUMED_ZONES = ("a", "b", "c")  # while the plan does not know the subnets yet


def _price_bucket(_values: ResourceValues, usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    yield f"{usage.warehouse_gb} GB", Decimal(usage.warehouse_gb) * prices["warehouse/gb_month"]


def _fixed_price_rule(
    path: str, description: str
) -> Callable[[ResourceValues, MonthlyUsage, PriceTable], CostLines]:
    def price_fixed(_values: ResourceValues, _usage: MonthlyUsage, prices: PriceTable) -> CostLines:
        yield description, prices[path]

    return price_fixed


def _price_logs(values: ResourceValues, usage: MonthlyUsage, prices: PriceTable) -> CostLines:
    if str(values["name"]).endswith("/kafka"):  # the part that writes most; all of it is reckoned here
        yield f"{usage.log_gb} GB of logs", Decimal(usage.log_gb) * prices["logs/gb"]


def _parse_number(text: str) -> Decimal:
    return Decimal(text.split()[0])


_PRICE_RULES: Mapping[str, Callable[[ResourceValues, MonthlyUsage, PriceTable], CostLines]] = {
    "aws_msk_cluster": _price_kafka,
    "aws_emrserverless_application": _price_spark,
    "aws_db_instance": _price_database,
    "aws_ecs_task_definition": _price_task,
    "aws_vpc_endpoint": _price_endpoint,
    "aws_s3_bucket": _price_bucket,
    "aws_cloudwatch_log_group": _price_logs,
    "aws_kms_key": _fixed_price_rule("key_month", "a customer's key"),
    "aws_secretsmanager_secret": _fixed_price_rule("secret_month", "a secret"),
    "aws_cloudwatch_metric_alarm": _fixed_price_rule("alarm_month", "an alarm"),
}
