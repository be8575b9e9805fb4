"""The code location that Dagster loads: the shipped catalog, and the environments.

Loading it imports neither Spark nor Great Expectations, and opens no broker, control store or environment.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache

from dagster import Definitions

from penstock.infra.environments import Catalog
from penstock.ingestion.contracts import CATALOG, Contract, contract_names, declared
from penstock.ingestion.sources.opening import source_kinds
from penstock.ingestion.topics import TopicPlan, plan_for
from penstock.pipelines import catalog
from penstock.platform.audit import audit_stream
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.control.reports import BatchSummary, read_by_topic, rows_given
from penstock.platform.definitions.assets import Surroundings
from penstock.platform.definitions.audits import audit_definitions
from penstock.platform.definitions.broken import broken_contracts, broken_pipelines, broken_suites
from penstock.platform.definitions.build import build
from penstock.platform.definitions.environments import Around, environment_definitions
from penstock.platform.definitions.expectations import Checking, expectation_definitions, to_open
from penstock.platform.definitions.ingestion import ingestion_job
from penstock.platform.definitions.lineage import lineage_definitions
from penstock.platform.definitions.operations import freshness_of, operations_definitions
from penstock.platform.definitions.pipeline import Pipeline, catalog_pipelines
from penstock.platform.definitions.quarantine import quarantine_definitions
from penstock.platform.definitions.statistics import statistics_definitions
from penstock.platform.definitions.topics import topic_definitions
from penstock.platform.expectations import (
    DAY_MS,
    all_suites,
    broken_within,
    check_tables,
    due_tables,
    page_of,
    shown_suites,
    told_since,
    where_broken,
)
from penstock.platform.feeds import open_feed
from penstock.platform.host.pages import served_at
from penstock.platform.lineage import Places, client_of, event_of
from penstock.platform.quarantine import Quarantine
from penstock.platform.rows_written import rows_written
from penstock.platform.settings import load_settings
from penstock.platform.statistics import measured, publish_statistics, statistics_of
from penstock.quality.audit.comparable import Sample
from penstock.quality.audit.verdict import Report

TOPICS_SECONDS = 10.0
"""How long a sensor waits for the broker: it has a minute for everything."""

settings = load_settings().settings
found = declared()


@cache
def _store() -> ControlStore:
    return open_control(settings.control_url, settings.control_secret)


def _environments() -> Definitions:
    catalog = Catalog(settings.root, settings.home)
    around = Around(catalog.open, catalog.begun, lambda: datetime.now(UTC), settings.dagster.owner)
    return environment_definitions(catalog.names(), around)


def _topic_plan(contracts: Sequence[Contract]) -> TopicPlan:
    kafka = settings.kafka
    client = kafka.client("topics")
    return plan_for(kafka.servers, contracts, kafka.layout, client=client, seconds=TOPICS_SECONDS)


def _audit(stream: str) -> Report:
    return audit_stream(settings, stream, Sample(), lambda _: None)


def _checking() -> Checking:
    return Checking(
        lambda wanted: check_tables(settings, wanted, lambda _: None),
        lambda about, at_ms: told_since(settings, about, at_ms),
        lambda: due_tables(settings),
        lambda topic: broken_within(settings, topic, DAY_MS),
        now_ms,
        page_of(settings),
        served_at(settings),
        lambda topic, one: where_broken(settings, topic, one),
    )


def _lineage() -> Definitions:
    if not settings.lineage.to:
        return Definitions()
    places = Places(settings.lineage.namespace, settings.kafka.servers, settings.warehouse)
    by_topic = {contract.topic: contract for contract in found.sound}

    def send(pipeline: Pipeline, summary: BatchSummary) -> None:
        read = read_by_topic(_store(), summary)
        kept = rows_written(settings.tables, pipeline.plan, summary.first, summary.last)
        written = {**rows_given(_store(), summary), **kept}
        event = event_of(summary, read, written, pipeline.plan, pipeline.description, by_topic, places)
        client_of(settings.lineage).emit(event)

    return lineage_definitions(tuple(catalog_pipelines()), _store, send)


def _ingestion() -> Definitions:
    job = ingestion_job(source_kinds(), lambda order: open_feed(settings, order))
    return Definitions.merge(topic_definitions(found.sound, _topic_plan), Definitions(jobs=[job]))


defs = Definitions.merge(
    build(
        found.sound,
        tuple(catalog_pipelines()),
        Surroundings(settings.warehouse, settings.dagster.owner, CATALOG, settings.tables),
        _store,
        now_ms,
        int(settings.dagster.report_seconds * 1000),
        (*broken_pipelines(), *broken_contracts(found.broken), *broken_suites(all_suites().broken)),
        freshness_of(settings, _store).keeping_up,
    ),
    _environments(),
    _ingestion(),
    audit_definitions(catalog.names(), _audit),
    expectation_definitions(shown_suites(), _checking()),
    statistics_definitions(
        measured(),
        lambda about: statistics_of(settings, about),
        lambda told: to_open(_checking(), "plots", publish_statistics(settings, told)),
    ),
    quarantine_definitions(contract_names(), lambda topic: Quarantine(settings, topic).standings()),
    _lineage(),
    operations_definitions(settings, _store),
)
