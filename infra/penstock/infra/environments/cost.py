"""What an environment costs a month, by arithmetic: resources of a plan times a table of prices.

An estimate, not a bill: it knows list prices of one region at one date, no discounts and no free tier, and
takes from `Usage` what no plan can know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from penstock.infra.environments.errors import PriceError
from penstock.infra.terraform import Resource

PRICES = Path(__file__).with_name("prices.yaml")
HOURS = Decimal(730)
"""Hours of a month, as AWS itself reckons."""


@dataclass(frozen=True)
class Usage:
    """What a month brings, where a plan does not say: busy hours of each Spark worker, stored and logged GB."""

    spark_hours: int = 730
    warehouse_gb: int = 500
    log_gb: int = 20


@dataclass(frozen=True)
class Item:
    """One line of an estimate."""

    address: str
    what: str
    monthly: Decimal


@dataclass(frozen=True)
class Estimate:
    """The lines, dearest first, and what they were reckoned from."""

    items: tuple[Item, ...]
    region: str
    date: str
    usage: Usage
    never_compared: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()

    @property
    def monthly(self) -> Decimal:
        """US dollars a month."""
        return sum((item.monthly for item in self.items), Decimal(0))


@dataclass(frozen=True)
class Prices:
    """A table of prices in US dollars.

    `never_compared` names groups that nobody has held against a public copy, `not_counted` what has no price here.
    """

    region: str
    date: str
    table: Mapping[str, Any]
    never_compared: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()

    def __getitem__(self, path: str) -> Decimal:
        found: Any = self.table
        for name in path.split("/"):
            if not isinstance(found, Mapping) or name not in found:
                raise PriceError(
                    f"{PRICES.name} has no price for {path}. Add it, with the date at which it held."
                )
            found = found[name]
        return Decimal(str(found))


def read_prices(path: Path = PRICES) -> Prices:
    """Read a table of prices."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
        never = tuple(name for name, told in document["sources"].items() if told["compared"] == "never")
        left_out = tuple(document["not_counted"])
        return Prices(document["region"], str(document["date"]), document["prices"], never, left_out)
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise PriceError(f"The price table {path} cannot be read: {error}.") from error


def estimate(resources: Iterable[Resource], usage: Usage, prices: Prices) -> Estimate:
    """Reckon what these resources cost a month; what has no price of its own is left out."""
    items = [item for resource in resources for item in _items(resource, usage, prices)]
    items.sort(key=lambda item: (-item.monthly, item.address))
    return Estimate(
        tuple(items), prices.region, prices.date, usage, prices.never_compared, prices.not_counted
    )


def _items(resource: Resource, usage: Usage, prices: Prices) -> Iterator[Item]:
    reckon = _RULES.get(resource.kind)
    if reckon:
        for what, monthly in reckon(resource.values, usage, prices):
            yield Item(resource.address, what, monthly.quantize(Decimal("0.01")))


Values = Mapping[str, Any]
Lines = Iterator[tuple[str, Decimal]]


def _kafka(values: Values, _usage: Usage, prices: Prices) -> Lines:
    brokers = Decimal(values["number_of_broker_nodes"])
    group = values["broker_node_group_info"][0]
    size, disk = (
        group["instance_type"],
        Decimal(group["storage_info"][0]["ebs_storage_info"][0]["volume_size"]),
    )
    yield f"{brokers} brokers {size}", brokers * HOURS * prices[f"kafka/broker_hour/{size}"]
    yield f"{brokers} disks of {disk} GB", brokers * disk * prices["kafka/storage_gb_month"]


def _spark(values: Values, usage: Usage, prices: Prices) -> Lines:
    for capacity in values["initial_capacity"]:
        config = capacity["initial_capacity_config"][0]
        worker = config["worker_configuration"][0]
        count, hours = Decimal(config["worker_count"]), Decimal(usage.spark_hours)
        cores, memory = _number(worker["cpu"]), _number(worker["memory"])
        hourly = cores * prices["spark/core_hour"] + memory * prices["spark/gb_hour"]
        yield f"{count} {capacity['initial_capacity_type'].lower()} for {hours} h", count * hours * hourly


def _database(values: Values, _usage: Usage, prices: Prices) -> Lines:
    zones = "two_zones" if values["multi_az"] else "one_zone"
    size, disk = values["instance_class"], Decimal(values["allocated_storage"])
    yield f"{size} in {zones.replace('_', ' ')}", HOURS * prices[f"database/{zones}/instance_hour/{size}"]
    yield f"{disk} GB", disk * prices[f"database/{zones}/storage_gb_month"]


def _task(values: Values, _usage: Usage, prices: Prices) -> Lines:
    cores, memory = Decimal(values["cpu"]) / 1024, Decimal(values["memory"]) / 1024
    hourly = cores * prices["container/core_hour"] + memory * prices["container/gb_hour"]
    yield f"{cores.normalize():f} cores, {memory.normalize():f} GB", HOURS * hourly


def _endpoint(values: Values, _usage: Usage, prices: Prices) -> Lines:
    if values["vpc_endpoint_type"] == "Interface":
        zones = Decimal(len(values.get("subnet_ids") or _THREE_ZONES))
        yield f"an address in {zones} zones", zones * HOURS * prices["network/endpoint_hour"]


_THREE_ZONES = ("a", "b", "c")  # while the plan does not know the subnets yet


def _bucket(_values: Values, usage: Usage, prices: Prices) -> Lines:
    yield f"{usage.warehouse_gb} GB", Decimal(usage.warehouse_gb) * prices["warehouse/gb_month"]


def _fixed(path: str, what: str) -> Callable[[Values, Usage, Prices], Lines]:
    def reckon(_values: Values, _usage: Usage, prices: Prices) -> Lines:
        yield what, prices[path]

    return reckon


def _flow(values: Values, usage: Usage, prices: Prices) -> Lines:
    if str(values["name"]).endswith("/kafka"):  # the part that writes most; all of it is reckoned here
        yield f"{usage.log_gb} GB of logs", Decimal(usage.log_gb) * prices["logs/gb"]


def _number(text: str) -> Decimal:
    return Decimal(text.split()[0])


_RULES: Mapping[str, Callable[[Values, Usage, Prices], Lines]] = {
    "aws_msk_cluster": _kafka,
    "aws_emrserverless_application": _spark,
    "aws_db_instance": _database,
    "aws_ecs_task_definition": _task,
    "aws_vpc_endpoint": _endpoint,
    "aws_s3_bucket": _bucket,
    "aws_cloudwatch_log_group": _flow,
    "aws_kms_key": _fixed("key_month", "a customer's key"),
    "aws_secretsmanager_secret": _fixed("secret_month", "a secret"),
    "aws_cloudwatch_metric_alarm": _fixed("alarm_month", "an alarm"),
}
