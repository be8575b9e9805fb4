"""Cuts the power many times: `python -m tests.pipelines.engine.power --states 100000`.

Prints the seed, the number of states, and for each fault a shrunk case. The status is 1 if there is a fault.
"""

import argparse
import logging
import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from tests.ingestion.power.producer_cuts import record_producer
from tests.pipelines.engine.batch.test_crashes import PLANS
from tests.pipelines.engine.power.power_cuts import RecordedRun, record_run, sample_crashes
from tests.quality.quarantine.decision_cuts import record_decisions

from penstock.engine.plan.stages import Plan

MAX_SHOWN_FAULTS = 10
RecordRun = Callable[[random.Random], AbstractContextManager[RecordedRun]]


def record_stream(plan: Plan, _: random.Random) -> AbstractContextManager[RecordedRun]:
    """Record a stream with this plan; its batches are always the same."""
    return record_run(plan)


SUBJECTS: Mapping[str, RecordRun] = {
    **{name: partial(record_stream, plan) for name, plan in PLANS.items()},
    "delivery ledger": record_producer,
    "quarantine decisions": record_decisions,
}


def main() -> int:
    """Record the subjects in turn until the number of states or the time is used up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100_000, help="cuts to try")
    parser.add_argument("--minutes", type=float, default=600.0, help="time limit")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument(
        "--subject", choices=sorted(SUBJECTS), action="append", help="what to run; all by default"
    )
    parser.add_argument("--round-states", type=int, default=200, help="cuts for each recorded run")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # what a start repairs is expected here
    names = arguments.subject or sorted(SUBJECTS)
    end = time.monotonic() + 60 * arguments.minutes
    tried = faults = rounds = 0
    print(f"seed {arguments.seed}", flush=True)
    while tried < arguments.states and time.monotonic() < end:
        name = names[rounds % len(names)]
        random_source = random.Random(f"{arguments.seed}/{rounds}")
        rounds += 1
        with SUBJECTS[name](random_source) as run:
            for crash in sample_crashes(run, random_source, arguments.round_states):
                tried += 1
                if fault := run.find_fault(crash):
                    faults += 1
                    if faults <= MAX_SHOWN_FAULTS:
                        print(
                            f"{name}, round {rounds - 1}: {fault}\n{run.shrink(crash).describe()}", flush=True
                        )
                if time.monotonic() > end:
                    break
        print(f"{name}: {tried} states, {faults} faults", flush=True)
    print(f"seed {arguments.seed}: {tried} states of {rounds} runs, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
