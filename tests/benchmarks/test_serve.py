"""The benchmark of the service runs."""

import pytest

from benchmarks import serve


@pytest.mark.slow
def test_serve():
    results = serve.measure(None, base=1_000, seconds=1.0, batches=2)
    for load in ("single", "single with readers"):
        assert results[load]["per_second"] > 0
    assert results["arrow"]["points_per_second"] > 0
    assert results["single with readers"]["/v1/clusters"]["p50_ms"] > 0
