"""Contracts with other topic names, so that tests can share a broker."""

import dataclasses

from penstock.ingestion.contracts import Contract, load_contract


def sensors_contract(topic: str) -> Contract:
    return dataclasses.replace(load_contract("sensors"), topic=topic)
