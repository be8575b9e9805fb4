"""Requests that Terraform passes to local programs."""

from __future__ import annotations

import pytest

from penstock.infra.local.action_requests import BrokerRequest, ProgramRequest, parse_request
from penstock.infra.local.errors import ActionRequestError


def test_an_action_request_is_validated_strictly() -> None:
    assert parse_request('{"directory": "/d", "name": "n"}', ProgramRequest).remove == ""
    with pytest.raises(ActionRequestError, match="is no program request"):
        parse_request('{"directory": "/d", "name": "n", "more": 1}', ProgramRequest)
    with pytest.raises(ActionRequestError, match="is no broker request"):
        parse_request("{}", BrokerRequest)
