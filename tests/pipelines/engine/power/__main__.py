"""Cuts the power many times: `python -m tests.pipelines.engine.power --states 100000`.

Prints the seed, the number of states, and for each fault a shrunk case. The status is 1 if there is a fault.
"""

import argparse
import logging
import random
import sys
import time

from tests.pipelines.engine.batch.test_crashes import PLANS
from tests.pipelines.engine.power.power_cuts import record_run, sample_crashes

MAX_SHOWN_FAULTS = 10


def main() -> int:
    """Run the plans in turn until the number of states or the time is used up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100_000, help="cuts to try")
    parser.add_argument("--minutes", type=float, default=600.0, help="time limit")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--plan", choices=sorted(PLANS), action="append", help="plans to run; all by default")
    parser.add_argument("--round-states", type=int, default=200, help="cuts for each recorded run")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # what a start repairs is expected here
    names = arguments.plan or sorted(PLANS)
    end = time.monotonic() + 60 * arguments.minutes
    tried = faults = rounds = 0
    print(f"seed {arguments.seed}", flush=True)
    while tried < arguments.states and time.monotonic() < end:
        name = names[rounds % len(names)]
        random_source = random.Random(f"{arguments.seed}/{rounds}")
        rounds += 1
        with record_run(PLANS[name]) as run:
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
