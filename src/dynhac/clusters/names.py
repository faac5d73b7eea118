"""Names of clusters: the words that set the texts of a cluster apart from all other texts.

A word counts once for each text that has it. The score of a word in a cluster is a class-based
TF-IDF: ``p * log(p / q)``, where p is the share of the cluster's texts that have the word, and q
the share of all texts. A word that is as frequent everywhere gets a score of about 0. Words that
are usual in many clusters, such as "the", are stop words, and get none; so no lists of them are
needed, in any language. Capital letters make no difference. Chinese and Japanese have no spaces:
their words are pairs of adjacent characters, and pairs that overlap are joined again in a name.

The same labels and texts give the same names. A `NameKeeper` keeps names while clusters change.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.input.errors import InvalidTypeError, counted, show
from dynhac.input.payloads import WITHOUT_SPACES

MOST_WORDS = 4
RIGHT_AMONG = 12
"""A word of a name is right as long as it is among so many best words of its cluster."""

LEAST_SCORE = 0.3
"""Words with a smaller part of the score of the best word are left out."""

USUAL = 0.1
"""A word is usual in a cluster if this share of its texts have it."""

STOP_SHARE = 0.2
LEAST_CLUSTERS = 10
"""A word that is usual in more than this share of the clusters is a stop word; but not if there are
so few clusters."""

SEPARATOR = ", "
APOSTROPHES = "'’"


class _Letters(dict[int, "str | None"]):
    """What becomes of characters: letters, marks and digits stay, others become spaces."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        if char in APOSTROPHES:
            result: str | None = None
        elif _has_no_spaces(char):
            result = f" {NO_SPACES}{char} "
        else:
            result = char if unicodedata.category(char)[0] in "LNM" else " "
        self[code] = result
        return result


NO_SPACES = "\0"
"""Stands before a character of a script without spaces."""

_letters = _Letters()


def words_of(text: str) -> list[str]:
    """Return the words of a text that can be in names, each once, in order.

    >>> words_of("The oil price: 12 dollars, the OPEC's price")
    ['the', 'oil', 'price', 'dollars', 'opecs']
    >>> words_of("石油价格")
    ['石油', '油价', '价格']
    """
    words: dict[str, None] = {}
    previous = ""
    for word in text.lower().translate(_letters).split():
        if word[0] == NO_SPACES:
            if previous:
                words[previous + word[1]] = None
            previous = word[1]
            continue
        previous = ""
        if len(word) > 1 and not word.isdigit():
            words[word] = None
    return list(words)


def names_of(labels: ArrayLike, texts: Sequence[str | None]) -> dict[int, str]:
    """Return names of clusters, of at most four words.

    Parameters
    ----------
    labels : sequence of int
        The cluster of every point; negative ones are in no cluster.
    texts : sequence of str or None
        The text of every point.

    Returns
    -------
    dict of int to str
        The name of each cluster, by label; "" if its texts have no words that tell it apart.

    Examples
    --------
    >>> texts = ["oil price falls", "the oil price", "gold mine", "the gold mines", "the rest"]
    >>> names_of([0, 0, 1, 1, -1], texts)
    {0: 'oil, price, falls', 1: 'gold, mine'}
    """
    return {label: _joined(_chosen(best)) for label, best in _best_words(labels, texts).items()}


class NameKeeper:
    """Names clusters again and again, and keeps the name of a cluster as long as it is right.

    A name is right while all of its words are among the twelve best of the cluster. Clusters are
    known by their ids, so these should be stable, such as those of a watch.

    Examples
    --------
    >>> keeper = NameKeeper()
    >>> keeper.names([0, 0, 1], ["oil price", "oil price", "rain"])
    {0: 'oil, price', 1: 'rain'}
    >>> keeper.names([0, 0, 0, 0, 1], ["oil price", "price oil", "price", "price", "rain"])
    {0: 'oil, price', 1: 'rain'}
    """

    def __init__(self) -> None:
        self._kept: dict[int, list[str]] = {}

    def names(self, labels: ArrayLike, texts: Sequence[str | None]) -> dict[int, str]:
        """Return names as `names_of` does; clusters that are gone are forgotten."""
        kept = {}
        for label, best in _best_words(labels, texts).items():
            before = self._kept.get(label, [])
            kept[label] = before if before and best.keys() >= set(before) else _chosen(best)
        self._kept = kept
        return {label: _joined(words) for label, words in kept.items()}


def check_texts(texts: Sequence[str | None], n: int) -> None:
    """Raise if these are not texts for n points."""
    if isinstance(texts, str) or len(texts) != n:
        size = "a str" if isinstance(texts, str) else counted(len(texts), "entry", "entries")
        raise ValueError(f"texts has {size}; it must have {n:,}, one for each point")
    for position, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise InvalidTypeError(f"text {show(text)} at position {position} is not a str or None")


def _best_words(labels: ArrayLike, texts: Sequence[str | None]) -> dict[int, dict[str, float]]:
    """Return the best words of each cluster and their scores, the best first."""
    column: NDArray[np.int64] = np.asarray(labels)
    check_texts(texts, len(column))
    everywhere: Counter[str] = Counter()
    inside: dict[int, Counter[str]] = {}
    sizes: Counter[int] = Counter()
    for label, text in zip(column.tolist(), texts, strict=True):
        words = words_of(text) if text else []
        everywhere.update(words)
        if label >= 0:
            sizes[label] += 1
            inside.setdefault(label, Counter()).update(words)
    total = len(column)
    stop = _stop_words(inside, sizes)
    best = {}
    for label in sorted(inside):
        size = sizes[label]
        scores = {
            word: _score(count / size, everywhere[word] / total, count, size)
            for word, count in inside[label].items()
            if word not in stop
        }
        # Among words of one score, the one that is more usual, then the one that came first.
        order = sorted(scores, key=lambda word: (-scores[word], -everywhere[word]))
        best[label] = {word: scores[word] for word in order[:RIGHT_AMONG]}
    return best


def _stop_words(inside: dict[int, Counter[str]], sizes: Counter[int]) -> set[str]:
    """Return the words that are usual in many clusters; single points are no clusters here."""
    usual: Counter[str] = Counter()
    clusters = 0
    for label, words in inside.items():
        if sizes[label] > 1:
            clusters += 1
            usual.update(word for word, n in words.items() if n > 1 and n >= USUAL * sizes[label])
    if clusters < LEAST_CLUSTERS:
        return set()
    return {word for word, n in usual.items() if n > STOP_SHARE * clusters}


def _score(inside: float, everywhere: float, count: int, size: int) -> float:
    """Return the score of a word from its shares of texts, rounded so that equal ones are equal."""
    if count == 1 and size > 3:
        return 0.0  # a single text does not name a cluster
    return round(inside * math.log(inside / everywhere), 12)


def _chosen(best: dict[str, float]) -> list[str]:
    """Return the words of a name: the best ones that do not repeat each other."""
    chosen: list[str] = []
    least = LEAST_SCORE * max(best.values(), default=0.0)
    for word, score in best.items():
        if len(chosen) == MOST_WORDS or score < least or score <= 0:
            break
        if not any(_alike(word, other) for other in chosen):
            chosen.append(word)
    return chosen


def _alike(a: str, b: str) -> bool:
    """Whether two words are forms of one, such as card and cards."""
    short, long = sorted((a, b), key=len)
    return len(short) > 2 and long.startswith(short) and len(long) - len(short) <= 3


def _joined(words: Iterable[str]) -> str:
    """Return a name; pairs of characters that overlap become one word."""
    parts: list[str] = []
    for word in words:
        for place, part in enumerate(parts):
            if _has_no_spaces(word[0]) and _has_no_spaces(part[0]):
                if part[-1] == word[0]:
                    parts[place] = part + word[1:]
                    break
                if word[-1] == part[0]:
                    parts[place] = word[:-1] + part
                    break
        else:
            parts.append(word)
    return SEPARATOR.join(parts)


def _has_no_spaces(char: str) -> bool:
    return WITHOUT_SPACES.match(char) is not None
