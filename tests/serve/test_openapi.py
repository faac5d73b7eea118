"""The OpenAPI document: generated requests get documented answers, and never a 500."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks
from serving import points, serving

EXAMPLES = 12
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
            check(operation, GenerationMode.POSITIVE)
            with suppress(Unsatisfiable):  # where every text is right, none is wrong
                check(operation, GenerationMode.NEGATIVE)
    assert {"POST /v1/points", "GET /v1/tree", "GET /v1/clusters/{cluster}"} <= seen
    assert served.client.get("/readyz").status_code == 200


def check(operation: Any, mode: GenerationMode) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=20)

    call()
