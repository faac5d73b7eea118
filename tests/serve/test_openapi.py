"""The OpenAPI document: generated requests get documented answers, and never a 500."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from serving import points, serving

EXAMPLES = 15
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("openapi") / "store") as served:
        served.post("/v1/points", points([[0, 0], [0, 0.1], [5, 5]], ["a", "b", "c"]))
        yield served


def test_the_document_is_kept(served):
    schema = schemathesis.openapi.from_url(f"{served.url}/v1/openapi.json")
    seen = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path != "/v1/events":  # which never ends
            seen.add(f"{operation.method.upper()} {operation.path}")
            check(operation)
    assert {"POST /v1/points", "GET /v1/tree", "GET /v1/clusters/{cluster}"} <= seen
    assert served.client.get("/readyz").status_code == 200


def check(operation: Any) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def call(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=20)

    call()
