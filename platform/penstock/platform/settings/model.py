"""What can be set, with defaults that work on one machine."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from penstock.engine.errors import StorageAddressError
from penstock.engine.storage import ObjectStoreConfig, ObjectStorePath, StoragePath, parse_storage_path
from penstock.infra.kafka_access import KafkaAccess, kafka_client_config
from penstock.platform.settings.kafka_security import KafkaSecuritySettings, SettingsSection
from penstock.platform.settings.launch_rules import find_launch_conflict

PortNumber = Annotated[int, Field(ge=1, le=65535)]
LOOPBACK = "127.0.0.1"


class KafkaSettings(SettingsSection):
    """The broker: a local one on these ports, or somebody else's where `bootstrap` names it."""

    port: PortNumber = Field(9092, description="where the local broker listens")
    controller_port: PortNumber = Field(9093, description="where the local broker's controller listens")
    heap_mb: int = Field(256, ge=64, description="the local broker's heap, in MB")
    bootstrap: str | None = Field(None, description="another broker to use; no local one is started then")
    registry: str | None = Field(None, description="a schema registry's address; a folder in home without it")
    registry_login: str = Field("", description="place of the registry's user:password: a file, or env:NAME")
    layout: str = Field("local", description="whose partitions and copies topics have, by their contracts")
    security: KafkaSecuritySettings = KafkaSecuritySettings()

    @model_validator(mode="after")
    def _check_security_has_bootstrap(self) -> Self:
        if self.security.is_secured and not self.bootstrap:
            raise ValueError(
                "kafka.security is for another broker: set kafka.bootstrap, too, or `penstock env use NAME`"
            )
        return self

    @model_validator(mode="after")
    def _check_login_has_registry(self) -> Self:
        if self.registry_login and not self.registry:
            raise ValueError("kafka.registry_login is for a registry over HTTP: set kafka.registry, too")
        return self

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers that clients use."""
        return self.bootstrap or f"{LOOPBACK}:{self.port}"

    @property
    def kafka_access(self) -> KafkaAccess:
        """What clients' settings are made from, once a user's password was read."""
        security = self.security
        return KafkaAccess(
            self.bootstrap_servers,
            security.protocol,
            security.mechanism,
            security.ca,
            security.secrets.model_dump(),
        )

    def client_config(self, user: Literal["ingestion", "host", "topics"]) -> dict[str, str]:
        """Settings of a client of librdkafka for one of the platform's users; its password is among them."""
        return kafka_client_config(self.kafka_access, user)


class SparkSettings(SettingsSection):
    """Where Spark runs and what it may take."""

    master: str = Field("local[*]", description="local[*], spark://host:port, yarn or k8s://address")
    launch: Literal["session", "submit"] = Field(
        "session", description="what begins a stream host's Spark: a session of its own, or spark-submit"
    )
    deploy_mode: Literal["client", "cluster"] = Field(
        "client", description="where spark-submit has the host run: here, or where yarn or k8s:// puts it"
    )
    properties: str = Field(
        "", description="a file of Spark settings of one's own for spark-submit: image, queue; they win"
    )
    driver_host: str = Field(
        LOOPBACK, description="the name or address by which Spark's workers find the host"
    )
    secret: str = Field("", description="place of the secret of Spark's master: a file, or env:NAME")
    driver_memory: str = Field("1g", pattern=r"^\d+[mg]$", description="the driver's heap")
    executor_memory: str = Field(
        "512m", pattern=r"^\d+[mg]$", description="the heap of each executor, on spark://host:port"
    )
    host_cores: int = Field(
        2, ge=1, description="the most cores that a stream host takes of spark://host:port: leave some over"
    )
    command_cores: int = Field(
        1, ge=1, description="the same for each replay, backfill, audit and check, which run beside hosts"
    )
    shuffle_partitions: int = Field(
        default_factory=lambda: os.cpu_count() or 1, ge=1, description="partitions of a shuffle"
    )


class HostSettings(SettingsSection):
    """The stream host: what it shows of itself, and how long its word counts."""

    metrics_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        9464,
        description="where the host serves health and Prometheus metrics; 0 for any port, which status shows",
    )
    batch_interval_ms: int = Field(
        200,
        ge=0,
        description="least time from one batch's begin to the next; 0 begins whenever a record is there",
    )
    driver_budget_mb: int = Field(
        256, ge=0, description="what the driver folds of a batch; a larger one is folded in the executors"
    )
    lease_seconds: float = Field(15.0, gt=1, le=300, description="how long a lease holds without a heartbeat")
    max_retries: int = Field(
        20, ge=1, description="how often in a row a stream may fail before it stays down"
    )
    poison_limit: int = Field(
        10, ge=0, description="how many records that break a stream's own code are set aside in 100 batches"
    )
    log_format: Literal["text", "json"] = Field("text", description="how the host writes its log")


class DagsterSettings(SettingsSection):
    """The orchestrator's processes and storage."""

    port: PortNumber = Field(3000, description="where the webserver listens")
    viewer_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        0, description="where a second webserver listens that only shows; 0 for none"
    )
    code_port: PortNumber = Field(4000, description="where the code server listens")
    storage_url: str | None = Field(None, description="postgresql://…; SQLite in the home folder without it")
    first_day: str = Field(
        "2026-01-01", pattern=r"^\d{4}-\d\d-\d\d$", description="the first day that backfills offer"
    )
    nightly_backfills: tuple[str, ...] = Field(
        (), description="pipelines that are run each night over what the archives took on the day before"
    )
    owner: str = Field("team:data", pattern=r"^(team:.+|.+@.+)$", description="team:NAME, or an address")
    keep_days: int = Field(7, ge=1, description="how long ticks of sensors and schedules are kept")
    spark_runs: int = Field(
        2, ge=1, description="how many replays, backfills, audits and checks run at once; the others wait"
    )
    report_seconds: float = Field(30.0, ge=0, description="least time between materializations of one stream")


class MaintenanceSettings(SettingsSection):
    """What is old, and when it is looked for."""

    schedule: str = Field("0 3 * * *", description="when Dagster runs maintenance, as cron has it, in UTC")
    files_days: int = Field(7, ge=1, description="how long files stay that tables no longer name")
    batches_days: int = Field(30, ge=1, description="how long the control store keeps batches")
    events_days: int = Field(30, ge=1, description="how long Dagster keeps events of assets, and runs")


class ObjectStoreSettings(SettingsSection):
    """The object store that tables are in, where `warehouse` is an address; keys are found as AWS's tools do."""

    endpoint: str = Field(
        "", pattern=r"^(|https?://.+)$", description="the store's address; Amazon's own without it"
    )
    region: str = Field("", description="the bucket's region; as AWS_REGION says without it")


class StreamAlertLimits(SettingsSection):
    """What one stream may, where that is something else than for the others."""

    watermark_minutes: float | None = Field(None, gt=0)
    lag_records: int | None = Field(None, ge=0)


class AlertSettings(SettingsSection):
    """What people are told at once, and where."""

    webhook: str = Field("", description="an address that gets alerts as JSON; the log has them anyway")
    watermark_minutes: float = Field(
        15.0, gt=0, description="how old a watermark may be while records come or wait"
    )
    without_host_seconds: float = Field(
        60.0, gt=0, description="how long a stream that is to run may be without a host"
    )
    lag_records: int = Field(100_000, ge=0, description="how many records may wait for a stream")
    of: dict[str, StreamAlertLimits] = Field(
        {}, description="watermark_minutes and lag_records of single streams, by their names"
    )


class FeedSettings(SettingsSection):
    """The feed of sensor readings that a fresh stack shows its results with."""

    enabled: bool = Field(True, description="whether the stack runs the feed")
    rate: float = Field(50.0, gt=0, description="readings a second")
    seed: int = Field(1, description="where the feed's random numbers begin")


class LineageSettings(SettingsSection):
    """Where it is told which tables come from which topics, for catalogs that understand OpenLineage."""

    to: str = Field(
        "", pattern=r"^(|file:.+|https?://.+)$", description="file:/path or http://host; nowhere without"
    )
    key: str = Field("", description="place of the key that the receiver asks for: a file, or env:NAME")
    namespace: str = Field("penstock", min_length=1, description="what jobs of this platform are filed under")


class Settings(BaseSettings):
    """Everything that can be set. Relative paths start from `root`."""

    model_config = SettingsConfigDict(
        env_prefix="PENSTOCK_", env_nested_delimiter="__", env_ignore_empty=True, extra="forbid", frozen=True
    )

    root: Path = Field(description="the checkout; penstock.toml is read here")
    home: Path = Field(Path(".penstock"), description="everything that running makes")
    jars: Path = Field(Path(), description="the jars of Spark and Kafka; in the home folder by default")
    warehouse: str = Field("", description="where the tables are, a folder or s3://bucket/prefix")
    control_url: str = Field("", description="the control store; SQLite in the home folder without it")
    control_secret: str = Field(
        "", description="place of the control store's password: a file, or env:NAME; libpq's own without it"
    )
    streams: Annotated[tuple[str, ...], NoDecode] = Field(
        ("sensor_minute", "archive-sensors"), description="what a fresh stack runs, with commas between"
    )
    kafka: KafkaSettings = KafkaSettings()
    spark: SparkSettings = SparkSettings()
    host: HostSettings = HostSettings()
    dagster: DagsterSettings = DagsterSettings()
    feed: FeedSettings = FeedSettings()
    lineage: LineageSettings = LineageSettings()
    alerts: AlertSettings = AlertSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    warehouse_store: ObjectStoreSettings = ObjectStoreSettings()

    @field_validator("streams", mode="before")
    @classmethod
    def _split_streams(cls, value: object) -> object:
        return (
            [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
        )

    @model_validator(mode="before")
    @classmethod
    def _resolve_paths(cls, values: dict[str, object]) -> dict[str, object]:
        """Make paths absolute, so that every process means the same folder."""
        root = Path(str(values["root"])).expanduser().resolve()
        home = root / Path(str(values.get("home") or ".penstock")).expanduser()
        return {
            **values,
            "root": root,
            "home": home,
            "jars": root / Path(str(values.get("jars") or home / "jars")).expanduser(),
            "warehouse": _resolve_warehouse(root, str(values.get("warehouse") or home / "warehouse")),
            "control_url": values.get("control_url") or f"sqlite:///{home / 'control.db'}",
        }

    @model_validator(mode="after")
    def _check_host_launch(self) -> Self:
        if problem := find_launch_conflict(self):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_ports_differ(self) -> Self:
        taken: dict[int, str] = {}
        for name, port in self.ports.items():
            if port in taken:
                raise ValueError(f"{name} and {taken[port]} are both {port}: give each a port of its own")
            taken[port] = name
        return self

    @property
    def warehouse_path(self) -> StoragePath:
        """Where the tables are."""
        store_settings = self.warehouse_store
        return parse_storage_path(
            self.warehouse, ObjectStoreConfig(store_settings.endpoint, store_settings.region)
        )

    @property
    def spark_jar_sets(self) -> tuple[str, ...]:
        """The jars that Spark takes: where tables are in an object store, those that read there, too."""
        return ("spark", "store") if isinstance(self.warehouse_path, ObjectStorePath) else ("spark",)

    @property
    def registry_location(self) -> str:
        """The schema registry: an address, or a folder."""
        return self.kafka.registry or str(self.home / "registry")

    @property
    def host_metrics_port(self) -> int:
        """Where the host shows itself on this machine; 0 where it does not, or where nobody can know."""
        return self.host.metrics_port if self.spark.deploy_mode == "client" else 0

    @property
    def ports(self) -> dict[str, int]:
        """Every port that the local stack listens on, by the setting's name."""
        return {
            "kafka.port": self.kafka.port,
            "kafka.controller_port": self.kafka.controller_port,
            **({"host.metrics_port": self.host_metrics_port} if self.host_metrics_port else {}),
            "dagster.port": self.dagster.port,
            "dagster.code_port": self.dagster.code_port,
            **({"dagster.viewer_port": self.dagster.viewer_port} if self.dagster.viewer_port else {}),
        }


def _resolve_warehouse(root: Path, address: str) -> str:
    """An address as it is; a path, absolute. ValueError for an address that tables cannot be at."""
    try:
        warehouse_path = parse_storage_path(address)
    except StorageAddressError as problem:
        raise ValueError(str(problem)) from None
    return str(
        warehouse_path if isinstance(warehouse_path, ObjectStorePath) else root / warehouse_path.expanduser()
    )
