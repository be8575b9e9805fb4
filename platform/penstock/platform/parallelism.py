"""How many tasks the settings and the contracts give a plan: said without asking Spark or the broker."""

from penstock.ingestion.contracts import contract_names, load_contract
from penstock.pipelines.plan.source import Topic
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.spark.physical import Parallelism
from penstock.platform.settings import Settings


def parallelism(plan: Plan, settings: Settings) -> Parallelism:
    """Partitions of the topics as their contracts lay them out for this environment, and of a shuffle."""
    topics = [source.origin.topic for source in plan.sources if isinstance(source.origin, Topic)]
    known = [topic for topic in topics if topic in contract_names()]
    return Parallelism(
        {topic: load_contract(topic).layout_in(settings.kafka.layout).partitions for topic in known},
        settings.spark.shuffle_partitions,
        settings.host.driver_budget_mb,
    )
