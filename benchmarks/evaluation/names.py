"""Titles and styles of systems and data sets, and the figures that the paper reports.

The colours of Okabe and Ito can be distinguished with any colour vision. There are more systems
than colours, so markers and lines differ too.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.common.datasets import TITLES


class Style(NamedTuple):
    """Title, colour, marker and line of a system or data set."""

    title: str
    colour: str
    marker: str
    line: str = "-"


SYSTEM_STYLES = {
    "dynhac": Style("dynhac (ours)", "#0072B2", "o"),
    "static": Style("static: our bulk build", "#000000", "s"),
    "exact": Style("exact dense HAC", "#000000", "x", ":"),
    "paper": Style("paper's algorithm (Python)", "#56B4E9", "D", "--"),
    "grinch": Style("GRINCH", "#D55E00", "^"),
    "grinch-normalised": Style("GRINCH, unit length", "#D55E00", "v", "--"),
    "onlinescc": Style("OnlineSCC", "#009E73", "P"),
    "onlinescc-normalised": Style("OnlineSCC, unit length", "#009E73", "X", "--"),
    "birch": Style("Birch", "#CC79A7", "<"),
    "agglomerative": Style("sklearn Agglomerative", "#999999", "p", "--"),
    "hdbscan": Style("HDBSCAN", "#E69F00", "h", ":"),
    "fishdbc": Style("FISHDBC", "#E69F00", "*"),
    "incdbscan": Style("IncrementalDBSCAN", "#CC79A7", ">", "--"),
    "dbstream": Style("DBSTREAM", "#999999", "d", ":"),
}
DATASET_TITLES = {name: title.partition(",")[0] for name, title in TITLES.items()}
DATASET_TITLES |= {"aloi": "ALOI", "ilsvrc": "ILSVRC"}
DATASET_STYLES = {
    "mnist": Style("MNIST", "#0072B2", "o"),
    "fruits360": Style("Fruits-360", "#D55E00", "s"),
    "tinyimagenet": Style("Tiny-ImageNet", "#009E73", "^"),
    "intents": Style("Intents", "#CC79A7", "D"),
    "reuters": Style("Reuters", "#E69F00", "v"),
    "aloi": Style("ALOI", "#D55E00", "P"),
    "ilsvrc": Style("ILSVRC", "#009E73", "X"),
    "cora": Style("Cora", "#56B4E9", "p"),
    "geonames": Style("GeoNames", "#999999", "h"),
    "email": Style("e-mail graph", "#999999", "*"),
    "digits": Style("digits", "#56B4E9", "<"),
    "blobs": Style("blobs", "#000000", ">"),
}


class Published(NamedTuple):
    """The paper's figures on one of its data sets: seconds per update, and NMI."""

    static_s: float
    insertion_s: float
    deletion_s: float
    nmi: dict[str, float]
    insertion_by_epsilon: dict[float, float]
    deletion_by_epsilon: dict[float, float]
    others_insertion_s: dict[str, float]
    others_deletion_s: dict[str, float]


# One core of a 3.1 GHz Xeon. The paper scaled the points of its baselines to unit length.
PAPER = {
    "mnist": Published(
        3.687,
        0.008703,
        0.092865,
        {"static": 0.915, "dynhac": 0.900}
        | {"grinch-normalised": 0.686, "onlinescc-normalised": 0.727},
        {0.0: 0.0160, 0.1: 0.0083, 1.0: 0.0061},
        {0.0: 0.207, 0.1: 0.081, 1.0: 0.049},
        {"grinch-normalised": 0.0014, "onlinescc-normalised": 0.0021},
        {"grinch-normalised": 0.00017},
    ),
    "aloi": Published(
        9.546,
        0.230439,
        1.382100,
        {"static": 0.889, "dynhac": 0.887}
        | {"grinch-normalised": 0.810, "onlinescc-normalised": 0.886},
        {0.0: 0.384, 0.1: 0.229, 1.0: 0.132},
        {0.0: 2.29, 0.1: 1.02, 1.0: 0.517},
        {"grinch-normalised": 0.091, "onlinescc-normalised": 0.0076},
        {"grinch-normalised": 0.0002},
    ),
    "ilsvrc": Published(
        8.057,
        0.804534,
        5.157170,
        {"static": 0.886, "dynhac": 0.897}
        | {"grinch-normalised": 0.779, "onlinescc-normalised": 0.890},
        {0.0: 1.41, 0.1: 0.797, 1.0: 0.308},
        {0.0: 9.18, 0.1: 5.06, 1.0: 2.15},
        {"grinch-normalised": 0.66, "onlinescc-normalised": 0.093},
        {"grinch-normalised": 0.0006},
    ),
}
