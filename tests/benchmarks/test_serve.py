"""The benchmark of the service runs."""

import shutil

import pytest

from benchmarks import serve, serve_page
from benchmarks.cost import tables


@pytest.mark.slow
def test_serve():
    results = serve.measure(None, base=1_000, seconds=1.0, batches=2)
    for load in ("single", "single with readers"):
        assert results[load]["per_second"] > 0
    assert results["single with readers"]["/v1/clusters"]["p50_ms"] > 0
    assert set(results["batches"]["of_alone"]) == {"arrow", "ndjson"}
    assert "16 clients" in tables.serve({"serve": results})
    assert "NDJSON" in tables.serve_batches({"serve": results})


@pytest.mark.slow
def test_serve_page():
    pytest.importorskip("selenium")
    if shutil.which("chromium") is None:
        pytest.skip("there is no Chromium")
    results = serve_page.measure(None, points=1_000, updates=2)
    assert len(results["first_view_ms"]) == 3
    assert results["tree"]["max_ms"] > 0
    assert results["clusters"]["max_ms"] > 0
    assert "first view" in tables.serve_page({"serve_page": results})
