"""Titles and styles of the ways to choose clusters."""

from __future__ import annotations

from benchmarks.evaluation.names import Style

CHOICE_STYLES = {
    "automatic": Style("automatic (ours)", "#0072B2", "o"),
    "best-cut": Style("best of 40 θ (ours, with the classes known)", "#000000", "s"),
    "automatic-anew": Style("automatic, built anew", "#56B4E9", "o", "--"),
    "theta": Style("θ, the best at the start", "#000000", "s"),
    "conductance": Style("conductance, the best at the start", "#009E73", "D"),
    "hdbscan-25": Style("HDBSCAN, 25", "#D55E00", "^"),
    "hdbscan-5": Style("HDBSCAN, 5 (default)", "#E69F00", "v", ":"),
    "fishdbc-25": Style("FISHDBC, 25", "#CC79A7", "*"),
    "fishdbc-5": Style("FISHDBC, 5 (default)", "#999999", "X", ":"),
}
PARTS = ("whole", "sample")
