"""The palette: colours that can be told apart, with any colour vision."""

from itertools import pairwise

import numpy as np
import pytest

from dynhac.plot.colours import PALETTE, colours_of

# Colour blindness as a linear map of linear RGB (Machado, Oliveira and Fernandes, 2009).
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]


def differences(colours, vision):
    """The distance in CIELAB of each pair of colours; 2.3 is just noticeable."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(VISIONS[vision]), 0, 1)
    x, y, z = (seen @ np.transpose(TO_XYZ) / [0.95047, 1, 1.08883]).T
    fx, fy, fz = (np.where(t > 0.008856, np.cbrt(t), (903.3 * t + 16) / 116) for t in (x, y, z))
    lab = np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], axis=1)
    return np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(len(colours), 1)]


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_can_be_told_apart(vision):
    assert differences(PALETTE[:12], vision).min() > (25 if vision == "normal" else 14)
    assert differences(PALETTE, vision).min() > (17 if vision == "normal" else 8)


def test_the_first_clusters_have_the_colours_of_their_ids():
    assert colours_of([2, 0, 1]) == {2: PALETTE[2], 0: PALETTE[0], 1: PALETTE[1]}


def test_colours_are_used_again_only_if_all_are_used():
    rng = np.random.default_rng(0)
    for count in (1, 5, 24, 25, 60):
        clusters = rng.choice(1000, count, replace=False).tolist()
        colours = colours_of(clusters)
        assert len(set(colours.values())) == min(count, len(PALETTE))
        ordered = [colours[c] for c in clusters]
        assert all(a != b for a, b in pairwise(ordered))


def test_a_new_cluster_changes_no_colour():
    old = colours_of([3, 27, 51, 4])
    new = colours_of([3, 90, 27, 51, 4])
    assert {c: new[c] for c in old} == old
