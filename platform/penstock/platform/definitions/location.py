"""The code location that Dagster loads: the catalog and the environments.

Loading it imports neither Spark nor Great Expectations, and opens no broker, control store or environment.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache

from dagster import Definitions

from penstock.core.clock import now_ms
from penstock.infra.environments import EnvironmentCatalog
from penstock.ingestion.contracts import CATALOG_FOLDER, Contract, list_contract_names, load_catalog
from penstock.ingestion.sources.source_discovery import list_source_kinds
from penstock.ingestion.topics import TopicPlan, plan_cluster_changes
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.reports import BatchSummary, count_reads_by_topic, count_result_rows
from penstock.platform.definitions.asset_specs import AssetContext
from penstock.platform.definitions.catalog_definitions import build_catalog_definitions
from penstock.platform.definitions.environments import EnvironmentContext, build_environment_definitions
from penstock.platform.definitions.load_errors import (
    find_contract_errors,
    find_pipeline_errors,
    find_suite_errors,
)
from penstock.platform.definitions.operations import build_freshness_monitor, build_operations_definitions
from penstock.platform.definitions.streams.audit_checks import build_audit_definitions
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline, list_catalog_pipelines
from penstock.platform.definitions.tables.expectation_checks import (
    CheckServices,
    build_expectation_definitions,
    file_link,
)
from penstock.platform.definitions.tables.lineage_sensor import build_lineage_definitions
from penstock.platform.definitions.tables.statistics_checks import build_statistics_definitions
from penstock.platform.definitions.topics.ingest_job import build_ingest_job
from penstock.platform.definitions.topics.quarantine_checks import build_quarantine_definitions
from penstock.platform.definitions.topics.topic_drift import build_topic_definitions
from penstock.platform.host.quality_pages import quality_url
from penstock.platform.lineage.openlineage import DatasetNamespaces, build_run_event, create_client
from penstock.platform.services.audit import audit_stream
from penstock.platform.services.expectations import (
    DAY_MS,
    check_tables,
    count_broken_checks,
    find_broken_examples,
    list_checked_suites,
    list_due_tables,
    list_results_since,
    load_all_suites,
    page_path,
)
from penstock.platform.services.feeds import open_feed
from penstock.platform.services.quarantine import TopicQuarantine
from penstock.platform.services.row_counts import count_rows_written
from penstock.platform.services.statistics import list_measured_suites, measure_table, publish_statistics
from penstock.platform.settings import load_settings
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.verdict import AuditReport

TOPICS_TIMEOUT_S = 10.0
"""How long the drift sensor waits for the broker; Dagster stops a tick after one minute."""

settings = load_settings().settings
contract_catalog = load_catalog()


@cache
def _open_store() -> ControlStore:
    return open_control_store(settings.control_url, settings.control_secret)


def _build_environments() -> Definitions:
    catalog = EnvironmentCatalog(settings.root, settings.home)
    environment_context = EnvironmentContext(
        catalog.open, catalog.provisioned_names, lambda: datetime.now(UTC), settings.dagster.owner
    )
    return build_environment_definitions(catalog.names(), environment_context)


def _plan_topics(contracts: Sequence[Contract]) -> TopicPlan:
    kafka = settings.kafka
    client = kafka.client_config("topics")
    return plan_cluster_changes(
        kafka.bootstrap_servers, contracts, kafka.layout, client_settings=client, timeout_s=TOPICS_TIMEOUT_S
    )


def _run_audit(stream: str) -> AuditReport:
    return audit_stream(settings, stream, Sample(), lambda _: None)


def _build_check_services() -> CheckServices:
    return CheckServices(
        lambda subjects: check_tables(settings, subjects, lambda _: None),
        lambda subject, since_ms: list_results_since(settings, subject, since_ms),
        lambda: list_due_tables(settings),
        lambda topic: count_broken_checks(settings, topic, DAY_MS),
        now_ms,
        page_path(settings),
        quality_url(settings),
        lambda topic, expectation: find_broken_examples(settings, topic, expectation),
    )


def _build_lineage() -> Definitions:
    if not settings.lineage.to:
        return Definitions()
    namespaces = DatasetNamespaces(
        settings.lineage.namespace, settings.kafka.bootstrap_servers, settings.warehouse
    )
    contracts_by_topic = {contract.topic: contract for contract in contract_catalog.contracts}

    def send_event(pipeline: CatalogPipeline, summary: BatchSummary) -> None:
        records_read = count_reads_by_topic(_open_store(), summary)
        counted_rows = count_rows_written(settings.warehouse_path, pipeline.plan, summary.first, summary.last)
        rows_written = {**count_result_rows(_open_store(), summary), **counted_rows}
        event = build_run_event(
            summary,
            records_read,
            rows_written,
            pipeline.plan,
            pipeline.description,
            contracts_by_topic,
            namespaces,
        )
        create_client(settings.lineage).emit(event)

    return build_lineage_definitions(tuple(list_catalog_pipelines()), _open_store, send_event)


def _build_ingestion() -> Definitions:
    job = build_ingest_job(list_source_kinds(), lambda order: open_feed(settings, order))
    return Definitions.merge(
        build_topic_definitions(contract_catalog.contracts, _plan_topics), Definitions(jobs=[job])
    )


defs = Definitions.merge(
    build_catalog_definitions(
        contract_catalog.contracts,
        tuple(list_catalog_pipelines()),
        AssetContext(settings.warehouse, settings.dagster.owner, CATALOG_FOLDER, settings.warehouse_path),
        _open_store,
        now_ms,
        int(settings.dagster.report_interval),
        (
            *find_pipeline_errors(),
            *find_contract_errors(contract_catalog.errors_by_topic),
            *find_suite_errors(load_all_suites().errors_by_subject),
        ),
        build_freshness_monitor(settings, _open_store).find_caught_up,
    ),
    _build_environments(),
    _build_ingestion(),
    build_audit_definitions(catalog.pipeline_names(), _run_audit),
    build_expectation_definitions(list_checked_suites(), _build_check_services()),
    build_statistics_definitions(
        list_measured_suites(),
        lambda subject: measure_table(settings, subject),
        lambda statistics: file_link(
            _build_check_services(), "plots", publish_statistics(settings, statistics)
        ),
    ),
    build_quarantine_definitions(
        list_contract_names(), lambda topic: TopicQuarantine(settings, topic).list_statuses()
    ),
    _build_lineage(),
    build_operations_definitions(settings, _open_store),
)
