"""The part of the compose format that our file uses; any other name is an error."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Duration = Annotated[str, Field(pattern=r"^\d+(s|m)$")]
Memory = Annotated[str, Field(pattern=r"^\d+[mg]$")]
Mount = Annotated[str, Field(pattern=r"^([a-z0-9-]+:/[a-z/]+|\./[a-z]+:/[a-z./-]+:ro)$")]
Image = Annotated[str, Field(pattern=r"^(penstock/[a-z]+|postgres:\d+\.\d+-[a-z]+)$")]
LoopbackPort = Annotated[str, Field(pattern=r"^127\.0\.0\.1:\d+:\d+$")]


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Build(StrictModel):
    context: Literal[".."]
    dockerfile: Annotated[str, Field(pattern=r"^docker/[a-z]+\.Dockerfile$")]


class Dependency(StrictModel):
    condition: Literal["service_healthy", "service_completed_successfully"]


class Health(StrictModel):
    test: Annotated[list[str], Field(min_length=2)]
    interval: Duration
    timeout: Duration
    retries: int
    start_period: Duration


class LogRotation(StrictModel):
    driver: Literal["local"]
    options: dict[Literal["max-size", "max-file"], str]


class Deploy(StrictModel):
    replicas: Annotated[int, Field(ge=1)]


class Service(StrictModel):
    image: Image
    build: Build | None = None
    command: list[str] | None = None
    environment: dict[str, str] = {}
    secrets: list[str] = []
    volumes: list[Mount] = []
    ports: list[LoopbackPort] = []
    depends_on: dict[str, Dependency] = {}
    healthcheck: Health | None = None
    deploy: Deploy | None = None
    init: bool = False
    restart: Literal["unless-stopped", "on-failure"]
    logging: LogRotation
    read_only: bool = False
    cap_drop: list[str] = []
    security_opt: list[str] = []
    tmpfs: list[str] = []
    mem_limit: Memory
    stop_grace_period: Duration | None = None


class DefaultVolume(StrictModel):
    """A volume with default settings."""


class Secret(StrictModel):
    file: Annotated[str, Field(pattern=r"^secrets/[a-z_]+$")]


class Compose(BaseModel):
    """The whole file. Names that start with x- are shared parts."""

    model_config = ConfigDict(extra="allow")

    name: Literal["penstock"]
    services: dict[str, Service]
    volumes: dict[str, DefaultVolume]
    secrets: dict[str, Secret]
