"""The settings of the stream host. Every part of the engine gets the whole group, and reads what it needs."""

import socket
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from penstock.core.secret_reference import SecretReference
from penstock.core.settings import DurationMs, SettingsSection

LOOPBACK = "127.0.0.1"
WILDCARDS = {"0.0.0.0", "::"}  # noqa: S104  compared with, not bound
"""Addresses that mean every address of this machine."""


class HostSettings(SettingsSection):
    """The stream host: its metrics, batches, leases and retries."""

    metrics_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        9464,
        description="port for health and Prometheus metrics; 0 picks a free port, which `status` shows",
    )
    metrics_address: str = Field(
        LOOPBACK,
        min_length=1,
        description="address that serves them; 0.0.0.0 for other machines, which then need host.metrics_token",
    )
    metrics_token: SecretReference = Field(
        "", description="secret reference: bearer token that other machines must send for metrics"
    )
    metrics_certificate: str = Field(
        "", description="PEM file of the certificate with its chain; the metrics are served over HTTPS then"
    )
    metrics_key: str = Field("", description="PEM file of the key of that certificate")
    batch_interval: DurationMs = Field(
        DurationMs(200),
        ge=0,
        description="minimum time between batch starts; 0s starts a batch when a record arrives",
    )
    driver_budget_mb: int = Field(
        256, ge=0, description="largest batch that the driver processes, in MB; executors process larger ones"
    )
    lease_timeout: DurationMs = Field(
        DurationMs(15_000), gt=1_000, le=300_000, description="how long a lease lasts without a heartbeat"
    )
    max_retries: int = Field(
        20,
        ge=1,
        description="failures in a row after which a stream stays failed; transient errors do not count",
    )
    poison_limit: int = Field(
        10, ge=0, description="records that user code may fail on in 100 batches; they are quarantined"
    )
    sync_writes: bool = Field(
        True,
        description="sync files to disk with each batch; without it a batch is some ms faster, and a power cut may "
        "take `penstock stream repair` or a replay",
    )
    log_format: Literal["text", "json"] = Field("text", description="format of the host's log")

    @model_validator(mode="after")
    def _check_certificate_has_key(self) -> Self:
        if bool(self.metrics_certificate) != bool(self.metrics_key):
            raise ValueError(
                "HTTPS needs host.metrics_certificate and host.metrics_key. Set both, or neither"
            )
        return self

    @property
    def local_metrics_address(self) -> str:
        """The address at which this machine reaches the metrics."""
        return LOOPBACK if self.metrics_address in WILDCARDS else self.metrics_address

    @property
    def reachable_metrics_address(self) -> str:
        """The address for others: the name of this machine if it serves the metrics at all of its addresses."""
        return socket.gethostname() if self.metrics_address in WILDCARDS else self.metrics_address

    @property
    def driver_budget_bytes(self) -> int:
        """The largest batch that the driver processes, in bytes."""
        return self.driver_budget_mb * 2**20


STANDALONE_SETTINGS = HostSettings(batch_interval=DurationMs(0), poison_limit=0)
"""For streams and runs without a host: no batch waits, and an error of user code fails its batch."""
