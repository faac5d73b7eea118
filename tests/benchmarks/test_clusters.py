"""The part of the evaluation about clusters without a threshold: figures, jobs and the report."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from benchmarks.common import datasets
from benchmarks.evaluation import paper
from benchmarks.evaluation.clusters import data, job, measures, plan
from benchmarks.evaluation.plan import FULL, QUICK
from benchmarks.systems import SYSTEMS, Settings, Unavailable, points_only


def test_whole_part(tmp_path, capsys):
    command = ["--part", "clusters", "--points", "400", "--quick", "--datasets", "blobs"]
    command += ["--out", str(tmp_path / "out"), "--processes", "2"]
    paper.main(command)
    file = tmp_path / "out" / "results" / "clusters" / "blobs.json"
    rows = json.loads(file.read_text())["rows"]
    assert len({row["commit"] for row in rows}) == 1
    done = {(r["system"], r["kind"]): r for r in rows}

    ours = done["dynhac", "choice"]["choices"]
    assert ours.keys() == {"automatic", "best-cut"}
    for found in ours.values():
        assert 0 < found["labels_s"] < found["scratch_s"]
        for way in ("ancestors", "alone", "together"):
            assert 0 < found[way]["nmi"] <= 1
    assert 1 < ours["automatic"]["clusters"] == ours["automatic"]["clusters_large"]
    assert ours["best-cut"]["noise"] == 0
    assert ours["best-cut"]["ancestors"]["nmi"] >= ours["automatic"]["ancestors"]["nmi"]

    changed = done["dynhac", "changes"]
    for kind in ("insertion", "deletion"):
        for found in changed[kind].values():
            assert len(found["each"]) == changed["updates"] == 20
            assert all(0 <= count < 400 for count in found["each"])

    grown = done["dynhac", "growth"]["checkpoints"]
    assert [at["points"] for at in grown] == [100, 200, 400]
    assert all(at["choices"].keys() == {"automatic", "theta", "conductance"} for at in grown)
    anew = done["dynhac-anew", "growth"]["checkpoints"]
    whole = anew[-1]["choices"]["automatic-anew"]
    assert all(ours["automatic"][k] == v for k, v in whole.items())

    text = (tmp_path / "out" / "index.md").read_text()
    nmi, ari = (100 * ours["automatic"]["ancestors"][m] for m in ("nmi", "ari"))
    assert f"| blobs | 400 | 30 | {nmi:.1f} / {ari:.1f} |" in text
    assert "first 400 points of every set" in text
    figures = re.findall(r"\]\((figures/clusters[^)]+)\)", text)
    assert len(figures) == 2
    assert all((tmp_path / "out" / shown).exists() for shown in figures)

    capsys.readouterr()
    paper.main(command)
    assert (
        f"{len(rows)} jobs on clusters, {len(rows)} of them done before" in capsys.readouterr().out
    )


def test_jobs(tmp_path):
    """Sets are run whole and, if they are larger, as samples; graphs only with our system."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "cora_er.npz", X=rng.normal(size=(700, 3)), y=np.arange(700) % 9)
    edges = np.array([[0, 1], [1, 2], [3, 4]])
    np.savez(tmp_path / "email_eu_core.npz", edges=edges, weight=[1.0, 2, 1], y=[0, 0, 0, 1, 1])
    assert data.available(tmp_path) == ["cora", "email"]
    assert data.available(None) == ["digits", "blobs"]
    found = list(plan.jobs(["cora", "email"], QUICK, tmp_path))
    assert {(j["dataset"], j["part"], j["size"]) for j in found} == {
        ("cora", "whole", 700),
        ("cora", "sample", 500),
        ("email", "whole", 5),
    }
    assert len({plan.key(j) for j in found}) == len(found)
    ran = {j["system"] for j in found if j["dataset"] == "email" and "skipped" not in j}
    assert ran == {"dynhac", "dynhac-anew"}
    assert all(j["part"] == "whole" for j in plan.jobs(["cora", "email"], FULL, tmp_path))


def test_growth_sizes():
    assert plan.growth_sizes(11_367) == [1_000, 2_000, 4_000, 8_000, 11_367]
    assert plan.growth_sizes(70_000)[-2:] == [32_000, 70_000]
    assert plan.growth_sizes(400) == [100, 200, 400]


def weights(model):
    u, v, w = (column.tolist() for column in model.edges())
    return {(min(a, b), max(a, b)): x for a, b, x in zip(u, v, w, strict=True)}


def test_a_graph_in_pieces_is_the_graph_at_once(tmp_path):
    rng = np.random.default_rng(1)
    edges = np.unique(np.sort(rng.integers(60, size=(300, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    weight = rng.integers(1, 3, size=len(edges)).astype(float)
    np.savez(tmp_path / "email_eu_core.npz", edges=edges, weight=weight, y=np.arange(60) % 4)
    source = data.load("email", tmp_path)
    assert source.w.max() == 1
    at_once, pieces = source.model(), source.model()
    source.insert(at_once, np.arange(60))
    for ids in np.split(np.arange(60), [10, 11, 40]):
        source.insert(pieces, ids)
    expected = weights(at_once)
    assert len(expected) == len(edges)
    assert weights(pieces) == expected
    source.delete(pieces, np.array([7]))
    assert weights(pieces) != expected
    source.insert(pieces, np.array([7]))
    assert weights(pieces) == expected
    order = np.random.default_rng(datasets.SEED).permutation(60)
    assert (source.classes == order % 4).all()
    assert source.prefix(30).u.max() < 30


def naive_ancestors(labels, tree):
    """Walk up from every noise point until there is a cluster."""
    n, members = len(labels), {i: {i} for i in range(len(labels))}
    for row, (a, b) in enumerate(tree[:, :2].astype(int).tolist()):
        members[n + row] = members[a] | members[b]
    out = labels.copy()
    for point in np.flatnonzero(labels < 0):
        above = sorted((m for m in members.values() if point in m), key=len)
        for group in above:
            inside = labels[sorted(group)]
            if (inside >= 0).any():
                sizes = np.bincount(inside[inside >= 0])
                out[point] = int(sizes.argmax())
                break
    return out


def test_noise_to_ancestors():
    """The same as a walk up the tree from every noise point, also if a tree has no cluster."""
    from scipy.cluster.hierarchy import fcluster, linkage

    rng = np.random.default_rng(2)
    for trial in range(30):
        tree = linkage(rng.normal(size=(40, 2)), "single")
        labels = fcluster(tree, rng.integers(2, 30), "maxclust").astype(np.int64)
        sizes = np.bincount(labels)
        labels[sizes[labels] < 3] = -1
        labels[labels == rng.integers(30)] = -1
        if trial == 0:
            labels[:] = -1
        labels = np.where(labels < 0, -1, np.unique(labels, return_inverse=True)[1])
        expected = naive_ancestors(labels, tree)
        assert measures.to_ancestors(labels, tree).tolist() == expected.tolist()


def test_ways_to_count_noise():
    """Points of one class: noise apart lowers agreement; unknown classes do not count."""
    classes = np.array([0, 0, 0, 1, 1, 1, -1])
    labels = np.array([0, 0, -1, 1, 1, -1, -1])
    found = measures.describe(classes, labels, np.array([0, 0, 0, 1, 1, 1, 0]))
    assert (found["clusters"], found["clusters_large"]) == (2, 0)
    assert found["noise"] == pytest.approx(3 / 7)
    assert found["ancestors"] == {"nmi": 1, "ari": 1}
    assert found["alone"]["nmi"] < 1
    assert found["together"]["nmi"] < found["alone"]["nmi"]


def test_best_value():
    classes = np.array([0, 0, 1, 1, -1])
    cuts = {0.1: [0] * 5, 0.2: [0, 0, 1, 1, 1], 0.3: [5, 5, 6, 6, 7]}
    assert job.best_of(np.array(list(cuts)), lambda t: np.array(cuts[t]), classes) == 0.2


@pytest.mark.parametrize("package", ["hdbscan", "fishdbc"])
def test_systems_choose(package):
    """The choice from the tree is that of the fit; a smallest cluster is kept to."""
    rng = np.random.default_rng(3)
    centres = np.array([[0, 0], [9, 0], [0, 9]])
    points = (centres[np.arange(150) % 3] + rng.normal(size=(150, 2))).astype(np.float32)
    try:
        system = SYSTEMS[package](Settings(min_size=25))
    except Unavailable as reason:
        pytest.skip(str(reason))
    system.build(points_only(np.arange(150), points))
    system.settle()
    labels, tree = system.choose()
    first = next(iter(system.cuts()))[1]
    assert (measures.together(labels) == first).all()
    assert tree.shape == (149, 4)
    assert np.bincount(labels[labels >= 0]).min() >= 25
    found = job.of_system(f"{package}-25", data.PointSet(points, np.arange(150) % 3))
    assert found["clusters"] == 3
    assert found["ancestors"]["nmi"] > 0.95
    assert 0 < found["labels_s"] < found["scratch_s"]


def test_too_much_work_for_hdbscan():
    many = data.PointSet(np.zeros((200_000, 3), np.float32), np.zeros(200_000, np.int64))
    with pytest.raises(Unavailable, match=r"points² x dimensions is 1\.2e\+11; run up to 1e\+11"):
        job.of_system("hdbscan-25", many)
