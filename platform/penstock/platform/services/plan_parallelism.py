"""How many tasks a plan runs as with these settings."""

from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.physical_plan import Parallelism
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.platform.settings import Settings


def derive_parallelism(plan: Plan, settings: Settings) -> Parallelism:
    """Return the partitions of the topics in this environment's layout, and the shuffle partitions."""
    topics = [source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin)]
    declared_topics = [topic for topic in topics if topic in list_contract_names()]
    return Parallelism(
        {
            topic: load_contract(topic).layout_for(settings.kafka.layout).partitions
            for topic in declared_topics
        },
        settings.spark.shuffle_partitions,
        settings.host.driver_budget_mb,
    )
