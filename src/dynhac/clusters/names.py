"""Names of clusters: the words that set the texts of a cluster apart from all other texts.

A word counts once for each text that has it. Its score in a cluster is a class-based TF-IDF with
two weights against words that say nothing, such as "the", so that no lists of them are needed:

    p * log(p / q) * concentration * weight of the length

p is the share of the cluster's texts that have the word, and q the mean of this share over all
clusters, large and small ones alike. The concentration is 1 for a word of one cluster, and 0 for a
word that all clusters have alike: 1 - entropy of the shares / its largest value. Words that say
little are short in most languages, so that short words need a higher share than long ones. Points
outside of clusters count as one more cluster.

Capital letters make no difference. Words that mostly follow each other in the texts are written
together: "exchange rate, currency". Chinese and Japanese have no spaces: their words are pairs of
adjacent characters, and pairs that overlap are joined again in a name.

The same labels and texts give the same names. A `NameKeeper` keeps names while clusters change.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.input.errors import InvalidTypeError, counted, show
from dynhac.input.payloads import WITHOUT_SPACES

MOST_WORDS = 4
AS_GOOD = 0.8
"""Of two forms of a word, one is as good as the other if it has this part of its score."""
RIGHT_AMONG = 12
"""A word of a name is right as long as it is among so many best words of its cluster."""

LEAST_SCORE = 0.4
"""Words with a smaller part of the score of the best word are left out,"""
LEAST_BESIDE = 0.2
"""or, if they stand beside a word of the name in the texts, words with a smaller part than this."""

LEAST_SHARE = 0.15
"""Words that fewer texts of a cluster have do not name it."""

LENGTH = 3.0
"""How fast the weight of a word grows with its length: 0.5 for 3 letters, 0.9 for 8."""

LONGEST = 40
"""Longer words are no words: numbers, keys and addresses."""

TOGETHER = 0.5
"""Two words are written together if they follow each other in this share of the texts that have
the rarer one."""

OUTSIDE = -1
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
        if 1 < len(word) <= LONGEST and not word.isdigit():
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
    {0: 'oil price, falls', 1: 'gold, mine'}
    """
    return NameKeeper().names(labels, texts)


class NameKeeper:
    """Names clusters again and again, and keeps the name of a cluster as long as it is right.

    A name is right while all of its words are among the twelve best of the cluster. Clusters are
    known by their ids, so these should be stable, such as those of a watch.

    Examples
    --------
    >>> keeper = NameKeeper()
    >>> keeper.names([0, 0, 1], ["oil price", "oil price", "rain"])
    {0: 'oil price', 1: 'rain'}
    >>> keeper.names([0, 0, 0, 0, 1], ["oil price", "price oil", "price", "price", "rain"])
    {0: 'oil price', 1: 'rain'}
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[list[str], str]] = {}  # the words of a name, and the name

    def names(self, labels: ArrayLike, texts: Sequence[str | None]) -> dict[int, str]:
        """Return names as `names_of` does; clusters that are gone are forgotten."""
        column: NDArray[np.int64] = np.asarray(labels)
        check_texts(texts, len(column))
        found: dict[int, list[list[str]]] = {}
        for label, text in zip(column.tolist(), texts, strict=True):
            found.setdefault(max(label, OUTSIDE), []).append(words_of(text) if text else [])
        kept = {}
        for label, best in _best_words(found).items():
            words, name = self._kept.get(label, ([], ""))
            if not words or not best.keys() >= set(words):
                words = _chosen(best, found[label])
                name = _joined(_together(words, found[label]))
            kept[label] = (words, name)
        self._kept = kept
        return {label: name for label, (_, name) in kept.items()}


def check_texts(texts: Sequence[str | None], n: int) -> None:
    """Raise if these are not texts for n points."""
    if isinstance(texts, str) or len(texts) != n:
        size = "a str" if isinstance(texts, str) else counted(len(texts), "entry", "entries")
        raise ValueError(f"texts has {size}; it must have {n:,}, one for each point")
    for position, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise InvalidTypeError(f"text {show(text)} at position {position} is not a str or None")


def _best_words(found: dict[int, list[list[str]]]) -> dict[int, dict[str, float]]:
    """Return the best words of each cluster and their scores, the best first.

    Words that too few texts have are among them, with a score of 0.
    """
    shares: dict[int, dict[str, float]] = {}
    everywhere: dict[str, list[float]] = {}
    for label in sorted(found):
        counts = Counter(word for words in found[label] for word in words)
        size = len(found[label])
        shares[label] = {word: count / size for word, count in counts.items()}
        for word, share in shares[label].items():
            everywhere.setdefault(word, []).append(share)
    weights = {word: _weight(word, some, len(found)) for word, some in everywhere.items()}
    best = {}
    for label in sorted(shares.keys() - {OUTSIDE}):
        # A single text does not name a cluster of several.
        least = max(LEAST_SHARE, 1.5 / len(found[label])) if len(found[label]) > 3 else 0.0
        own, scores = shares[label], {}
        for word, share in own.items():
            usual, weight = weights[word]
            # Rounded, so that equal ones are equal.
            scores[word] = round(share * math.log(share / usual) * weight, 12)
        # Among words of one score, the one that is more usual, then the one that came first.
        order = sorted(scores, key=lambda word: (-scores[word], -weights[word][0]))[:RIGHT_AMONG]
        best[label] = {word: scores[word] if own[word] >= least else 0.0 for word in order}
    return best


def _weight(word: str, shares: list[float], clusters: int) -> tuple[float, float]:
    """Return the mean share of a word in clusters, and its weight.

    ``shares`` are those of the clusters that have the word.
    """
    total = sum(shares)
    entropy = -sum(share * math.log(share / total) for share in shares) / total
    concentration = 1 - entropy / math.log(clusters) if clusters > 1 else 1.0
    length = 1.0 if _has_no_spaces(word[0]) else 1 - math.exp((1 - len(word)) / LENGTH)
    return total / clusters, max(concentration, 0.0) * length


def _chosen(best: dict[str, float], texts: list[list[str]]) -> list[str]:
    """Return the words of a name: the best ones that do not repeat each other."""
    chosen: list[str] = []
    top = max(best.values(), default=0.0)
    counts, pairs = _pairs(set(best), texts)

    def beside(word: str) -> bool:
        return any(
            max(pairs[word, other], pairs[other, word]) >= TOGETHER * counts[other]
            for other in chosen
        )

    for least, only_beside in ((LEAST_SCORE, False), (LEAST_BESIDE, True)):
        for word, score in best.items():
            enough = score >= least * top and score > 0 and (beside(word) or not only_beside)
            if enough and not any(_alike(word, other) for other in chosen):
                # Of forms that are as good, the shortest.
                forms = [o for o in best if _alike(o, word) and best[o] >= AS_GOOD * score]
                chosen.append(min(forms, key=len, default=word))
    return chosen[:MOST_WORDS]


def _pairs(
    wanted: set[str], texts: list[list[str]]
) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Return how many texts have each wanted word, and each pair of them side by side."""
    counts: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for text in texts:
        counts.update(wanted.intersection(text))
        pairs.update((a, b) for a, b in pairwise(text) if a in wanted and b in wanted)
    return counts, pairs


def _alike(a: str, b: str) -> bool:
    """Whether two words are forms of one, such as card and cards, vote and voting."""
    short, long = sorted((a, b), key=len)
    if len(short) < 3:
        return False
    stem = short[:-1] if short[-1] in "ey" and long[len(short) - 1 :].startswith("i") else short
    return long.startswith(stem) and len(long) - len(stem) <= (3 if len(short) < 5 else 4)


def _together(words: list[str], texts: list[list[str]]) -> list[str]:
    """Return the words of a name, those that follow each other in texts as one."""
    counts, pairs = _pairs(set(words), texts)
    joined = {word: word for word in words}  # by the first word
    last = {word: word for word in words}  # the last word, by the first one
    for (a, b), count in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0])):
        head = next((word for word, end in last.items() if end == a), None)
        often = count > 1 and count >= TOGETHER * min(counts[a], counts[b])
        if often and head is not None and b in joined and b != head and not _has_no_spaces(a[0]):
            joined[head] += f" {joined.pop(b)}"
            last[head] = last.pop(b)
    return sorted(joined.values(), key=lambda part: min(words.index(w) for w in part.split(" ")))


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
