"""Contracts under names of their own, so that tests share a broker and no topic."""

import dataclasses

from penstock.ingestion.contracts import Contract, load_contract


def sensors_contract(topic: str) -> Contract:
    return dataclasses.replace(load_contract("sensors"), topic=topic)
