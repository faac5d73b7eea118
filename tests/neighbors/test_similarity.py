"""Similarities from distances: every rule with every metric, and functions of the user."""

import numpy as np
import pytest

from dynhac.neighbors.similarity import Similarity, resolve_similarity

DISTANCES = np.array([[0.0, 0.5], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("spec", "metric", "wanted"),
    [
        (None, "euclidean", 1 / (1 + DISTANCES)),
        (None, "cosine", 1 / (1 + DISTANCES)),
        (None, "inner_product", np.zeros((2, 2))),
        ("inverse", "euclidean", 1 / (1 + DISTANCES)),
        ("inverse", "cosine", 1 / (1 + DISTANCES)),
        ("cosine", "cosine", [[1.0, 0.5], [0.0, 0.0]]),
        ("gaussian", "euclidean", np.exp(-(DISTANCES**2) / 2)),
        (("gaussian", 2), "euclidean", np.exp(-(DISTANCES**2) / 8)),
        (["gaussian", 0.5], "cosine", np.exp(-(DISTANCES**2) * 2)),
        (lambda d: 3 - d, "euclidean", 3 - DISTANCES),
        (lambda d: np.ones(d.shape, np.int8), "inner_product", np.ones((2, 2))),
        (lambda d: (3 - d).tolist(), "cosine", 3 - DISTANCES),
    ],
)
def test_rules(spec, metric, wanted):
    similarity = resolve_similarity(spec, metric)
    found = similarity(DISTANCES)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    assert found.dtype == np.float64
    assert not np.signbit(found).any()
    assert similarity(np.empty((0, 3))).shape == (0, 3)


def test_dot_is_the_inner_product():
    found = resolve_similarity("dot", "inner_product")(np.array([-3.0, 0.0, 2.0]))
    assert found.tolist() == [3.0, 0.0, 0.0]
    assert not np.signbit(found).any()


@pytest.mark.parametrize("spec", ["inverse", "gaussian", ("gaussian", 1e-300)])
def test_very_large_distances_have_similarity_near_zero(spec):
    far = resolve_similarity(spec, "euclidean")(np.array([0.0, 1e40, np.inf]))
    assert far[0] == 1.0
    assert far[1] <= 1e-40
    assert far[2] == 0.0


@pytest.mark.parametrize("spec", ["inverse", "cosine", "gaussian", ("gaussian", 0.3)])
def test_a_rule_can_be_made_from_its_spec(spec):
    rule = resolve_similarity(spec, "cosine")
    assert resolve_similarity(rule.spec, "cosine") == rule
    assert resolve_similarity(rule, "cosine") == rule


def test_a_function_has_no_spec():
    rule = resolve_similarity(np.exp, "euclidean")
    assert isinstance(rule, Similarity)
    assert rule.spec is None
    assert resolve_similarity(rule, "euclidean") == rule


def test_a_function_cannot_change_the_distances():
    def rude(distances):
        distances += 1
        return distances

    distances = DISTANCES.copy()
    resolve_similarity(rude, "euclidean")(distances)
    np.testing.assert_array_equal(distances, DISTANCES)


WANTED = "it must be 'inverse', 'cosine', 'gaussian', ('gaussian', sigma), 'dot' or a function"


@pytest.mark.parametrize(
    ("spec", "metric", "kind", "message"),
    [
        ("linear", "euclidean", ValueError, f"similarity is 'linear'; {WANTED}"),
        (3, "euclidean", TypeError, f"similarity is 3; {WANTED}"),
        (("inverse", 2), "euclidean", ValueError, f"similarity is ('inverse', 2); {WANTED}"),
        (("gaussian",), "euclidean", ValueError, f"similarity is ('gaussian',); {WANTED}"),
        (
            ("gaussian", 0),
            "euclidean",
            ValueError,
            "sigma of the similarity is 0; it must be a finite number > 0",
        ),
        (
            ("gaussian", "wide"),
            "euclidean",
            TypeError,
            "sigma of the similarity is 'wide'; it must be a finite number > 0",
        ),
        (
            "cosine",
            "euclidean",
            ValueError,
            "similarity is 'cosine', which is for metric 'cosine', not 'euclidean'",
        ),
        (
            "dot",
            "cosine",
            ValueError,
            "similarity is 'dot', which is for metric 'inner_product', not 'cosine'",
        ),
        (
            "inverse",
            "inner_product",
            ValueError,
            "similarity is 'inverse', which is for metric 'euclidean' or 'cosine', "
            "not 'inner_product'",
        ),
        (
            ("gaussian", 2),
            "inner_product",
            ValueError,
            "similarity is 'gaussian', which is for metric 'euclidean' or 'cosine', "
            "not 'inner_product'",
        ),
        (
            "inverse",
            "angular",
            ValueError,
            "metric is 'angular'; it must be 'euclidean', 'cosine' or 'inner_product'",
        ),
    ],
)
def test_wrong_specs(spec, metric, kind, message):
    with pytest.raises(kind) as error:
        resolve_similarity(spec, metric)
    assert str(error.value) == message
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (
            lambda d: 1.5 - d,
            ValueError,
            "the similarity function returned -0.5 for distance 2.0; similarities must be finite "
            "and >= 0",
        ),
        (
            lambda d: np.where(d == 0.5, np.nan, 1.0),
            ValueError,
            "the similarity function returned nan for distance 0.5; similarities must be finite "
            "and >= 0",
        ),
        (
            lambda d: np.where(d == 0.0, np.inf, 1.0),
            ValueError,
            "the similarity function returned inf for distance 0.0; similarities must be finite "
            "and >= 0",
        ),
        (
            lambda d: d.ravel(),
            ValueError,
            "the similarity function returned shape (4,) for distances of shape (2, 2); it must "
            "return one similarity per distance",
        ),
        (
            lambda d: 1.0,
            ValueError,
            "the similarity function returned shape () for distances of shape (2, 2); it must "
            "return one similarity per distance",
        ),
        (
            lambda d: d > 1,
            TypeError,
            "the similarity function returned bool values; they must be int or float",
        ),
        (
            lambda d: None,
            TypeError,
            "the similarity function returned object values; they must be int or float",
        ),
    ],
)
def test_wrong_functions(function, kind, message):
    with pytest.raises(kind) as error:
        resolve_similarity(function, "euclidean")(DISTANCES)
    assert str(error.value) == message
    assert isinstance(error.value, ValueError)
