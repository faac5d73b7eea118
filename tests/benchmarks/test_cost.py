"""The benchmarks of cost run on small jobs, and the documents show the committed results."""

import argparse
import json

import pytest

from benchmarks import ROOT
from benchmarks.common.markdown import filled
from benchmarks.common.streams import prepare
from benchmarks.cost import jobs, points, store, tables, updates
from benchmarks.evaluation.clusters import results as cluster_results
from benchmarks.evaluation.clusters import tables as cluster_tables
from benchmarks.evaluation.paper import PUBLISHED, PUBLISHED_RESULTS
from benchmarks.evaluation.read_results import read_results
from benchmarks.evaluation.tables import TABLES


@pytest.mark.parametrize(
    ("script", "module", "job"),
    [
        (updates, "updates", {"experiment": "shapes", "name": "grid", "size": 100, "updates": 3}),
        (updates, "updates", {"experiment": "bridge", "name": "bridge", "size": 100, "updates": 4}),
        (points, "points", {"experiment": "scale", "name": "uniform", "size": 400, "data": None}),
    ],
)
def test_measurements(script, module, job, tmp_path):
    row = jobs.run_job(f"benchmarks.cost.measure_{module}", job | {"epsilon": 0.1, "repeats": 1})
    assert row["ok"], row["report"]
    for _ in range(2):  # a job measured again replaces its row
        jobs.keep(tmp_path, row)
    assert json.loads((tmp_path / f"{job['experiment']}.json").read_text())["rows"] == [row]
    assert f"{job['experiment']} {job['name']} {job['size']}" in script.console_line(row)


def test_stream(tmp_path):
    path = str(prepare(tmp_path, "digits", "insertion", None))
    job = {"experiment": "streams", "name": "digits", "protocol": "insertion", "path": path}
    job |= {"epsilon": 0.1, "threshold": 1e-4, "repeats": 3}
    row = jobs.run_job("benchmarks.cost.measure_updates", job)
    assert row["updates"] == 200
    assert row["ms_mean"] == sorted(row["ms_mean_of_runs"])[1]


def test_rows_of_other_commits_are_dropped(tmp_path):
    row = {"experiment": "shapes", "name": "grid", "size": 1, "commit": "a"}
    jobs.keep(tmp_path, row)
    jobs.keep(tmp_path, row | {"size": 2})
    jobs.keep(tmp_path, row | {"size": 3, "commit": "b"})
    kept = json.loads((tmp_path / "shapes.json").read_text())["rows"]
    assert [r["size"] for r in kept] == [3]


def test_jobs_of_the_real_data_sets():
    options = argparse.Namespace(data=ROOT, datasets=None, experiments=[*points.EXPERIMENTS])
    options.repeats = 3
    for job in points.jobs(options):
        file = jobs.RESULTS / f"{job['experiment']}.json"
        keys = [{k: row.get(k) for k in jobs.KEY} for row in json.loads(file.read_text())["rows"]]
        assert {k: job.get(k) for k in jobs.KEY} in keys


def test_documents_show_the_committed_results():
    results = {f.stem: json.loads(f.read_text()) for f in jobs.RESULTS.glob("*.json")}
    tables_of = tables.TABLES.items()
    content = {name: show(results) for name, (of, show) in tables_of if of in results}
    for name in tables.DOCUMENTS:
        text = (ROOT / name).read_text()
        assert filled(text, content) == text
    evaluated = read_results(PUBLISHED_RESULTS)
    text = (PUBLISHED / "index.md").read_text()
    assert filled(text, {name: show(evaluated) for name, show in TABLES.items()}) == text
    chosen = cluster_results.read(PUBLISHED_RESULTS)
    if chosen.rows:
        shown = {name: show(chosen) for name, show in cluster_tables.TABLES.items()}
        assert filled(text, shown) == text


def test_store_lines():
    for row in json.loads((jobs.RESULTS / "store.json").read_text())["rows"]:
        assert store.console_line(row).startswith(f"store {row['name']} {row['protocol']}")
