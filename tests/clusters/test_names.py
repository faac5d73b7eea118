"""Names of clusters: the words that set their texts apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynhac
from dynhac import GraphHAC
from dynhac.clusters import NameKeeper, names_of
from dynhac.clusters.names import MOST_WORDS, RIGHT_AMONG, words_of

TOPICS = {
    "oil": ["crude", "barrel", "opec", "refinery"],
    "gold": ["gold", "mine", "ounce", "bullion"],
    "rain": ["storm", "flood", "rainfall", "weather"],
}
FILLERS = ["the", "a", "of", "and", "in", "to", "said", "it", "is", "for", "on", "with"]


def news(n=60, seed=0):
    """Labels and texts: each text has words of its topic, and others that all texts may have."""
    rng = np.random.default_rng(seed)
    labels, texts = [], []
    for label, words in enumerate(TOPICS.values()):
        for _ in range(n):
            chosen = [*rng.choice(words, 2, replace=False), *rng.choice(FILLERS, 6)]
            texts.append(" ".join(rng.permutation(chosen)))
            labels.append(label)
    return labels, texts


def test_topics_are_found_and_fillers_are_not():
    names = names_of(*news())
    assert list(names) == [0, 1, 2]
    for name, words in zip(names.values(), TOPICS.values(), strict=True):
        assert set(name.split(", ")) <= set(words)
        assert len(name.split(", ")) >= 2


def test_stop_words_when_there_are_many_clusters():
    labels, texts = [], []
    for label in range(20):
        extra = "please" if label < 10 else "tell"
        labels += [label] * 5
        texts += [f"{extra} word{chr(97 + label)} {extra}"] * 5
    names = names_of(labels, texts)
    assert names == {label: f"word{chr(97 + label)}" for label in range(20)}


def test_order_of_points_makes_no_difference():
    labels, texts = news()
    order = np.random.default_rng(1).permutation(len(labels))
    shuffled = names_of(np.array(labels)[order], [texts[i] for i in order])
    assert {k: set(v.split(", ")) for k, v in shuffled.items()} == {
        k: set(v.split(", ")) for k, v in names_of(labels, texts).items()
    }


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["石油价格下跌", "石油价格上涨", "黄金矿山", "黄金矿山开采"], ["石油价格", "黄金矿山"]),
        (["أسعار النفط", "النفط يرتفع", "منجم الذهب", "الذهب اليوم"], ["النفط", "الذهب"]),
        (["तेल की कीमत", "तेल बढ़ा", "सोने की खान", "सोने का दाम"], ["तेल", "सोने"]),
        (["Ölpreis fällt", "ÖLPREIS steigt", "Goldmine", "die Goldmine"], ["ölpreis", "goldmine"]),
        (["цена нефти", "нефти мало", "золото дня", "золото"], ["нефти", "золото"]),
    ],
)
def test_scripts(texts, expected):
    names = names_of([0, 0, 1, 1], texts)
    for label, word in enumerate(expected):
        assert names[label].split(", ")[0].startswith(word)


def test_forms_of_one_word_are_named_once():
    names = names_of([0, 0, 0, 1], ["card cards", "cards card", "card", "rain"])
    assert names[0] == "card"
    texts = ["vote votes voters", "voting vote voter", "votes vote", "rain", "rain"]
    assert names_of([0, 0, 0, 1, 1], texts)[0] == "vote"


def test_words_that_follow_each_other_are_written_together():
    texts = ["the exchange rate today", "exchange rate of the euro", "an exchange rate"]
    names = names_of([0, 0, 0, 1, 1], [*texts, "the rain today", "rain of an hour"])
    assert names[0].split(", ")[0] == "exchange rate"
    # In the order of the texts, also where the second word is the better one.
    texts = ["night train", "a night train", "night train", "train", "train", "rain", "rain"]
    names = names_of([0, 0, 0, 0, 0, 1, 1], texts)
    assert names[0] == "night train"


def test_words_that_say_little_are_left_out():
    """Headlines of topics: prepositions are in some topics only, and still no part of names."""
    places = ["Lisbon", "Osaka", "Lima", "Oslo", "Boston"]
    days = ["Monday", "Friday", "Sunday"]
    templates = [
        "Voters in {0} go to the polls on {1}",
        "The coffee harvest in {0} late as of {1}",
        "Museum of {0} to return bronzes by {1}",
        "Dock workers of {0} strike on {1}",
        "Flood in {0} by {1} as the river rises",
    ]
    labels, texts = [], []
    for label, template in enumerate(templates):
        for i in range(30):
            labels.append(label)
            texts.append(template.format(places[i % 5], days[i % 3]))
    names = names_of(labels, texts)
    for name in names.values():
        words = set(name.replace(",", "").split())
        assert not words & {"in", "to", "the", "on", "as", "of", "by"}, name
    assert "voters" in names[0]
    assert "coffee harvest" in names[1]
    assert "dock workers" in names[3]


def test_a_long_sequence_of_letters_is_no_word():
    names = names_of([0, 0, 1, 1], ["x" * 600, "oil " + "x" * 600, "rain", "rain"])
    assert names[0] == "oil"


def test_texts_without_words():
    assert names_of([0, 0, 1], [None, "12 % !", "a 1"]) == {0: "", 1: ""}
    assert names_of([-1, -1], ["oil", "oil"]) == {}
    assert names_of([], []) == {}
    assert names_of([0, 0], ["oil", "oil"]) == {0: ""}


def test_wrong_texts():
    with pytest.raises(ValueError, match="texts has 1 entry; it must have 2"):
        names_of([0, 1], ["oil"])
    with pytest.raises(ValueError, match="a str"):
        names_of([0, 1], "oi")
    with pytest.raises(TypeError, match="3 at position 1"):
        names_of([0, 1], ["oil", 3])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-1, 4), st.one_of(st.none(), st.text())), max_size=30))
def test_any_texts(rows):
    labels, texts = [row[0] for row in rows], [row[1] for row in rows]
    names = names_of(labels, texts)
    assert sorted(names) == sorted({label for label in labels if label >= 0})
    assert names == names_of(labels, texts)
    for label, name in names.items():
        assert len(name.split(", ")) <= MOST_WORDS
        own = [
            text.lower() for each, text in zip(labels, texts, strict=True) if each == label and text
        ]
        for word in name.split(", ") if name else []:
            assert any(word[0] in text for text in own)


def test_a_keeper_keeps_names_until_they_are_wrong():
    labels, texts = news()
    keeper = NameKeeper()
    first = keeper.names(labels, texts)
    assert first == names_of(labels, texts)
    # New texts change what is best, but the words are still among the best.
    more = ["barrel refinery"] * 200
    assert names_of([*labels, *[0] * 200], [*texts, *more])[0] != first[0]
    assert keeper.names([*labels, *[0] * 200], [*texts, *more]) == first
    # Now cluster 0 is about something else.
    other = [" ".join(f"new{chr(97 + (i + j) % 20)}" for j in range(15)) for i in range(2000)]
    later = keeper.names([*labels, *[0] * 2000], [*texts, *other])
    assert "new" in later[0]
    assert (later[1], later[2]) == (first[1], first[2])
    assert keeper.names([5], ["rain"]) == {5: ""}
    assert keeper.names(labels, texts)[0] == first[0]  # what is gone is forgotten
    assert RIGHT_AMONG > MOST_WORDS


def test_words():
    assert words_of("It's the OPEC's 2nd: 12 mp3") == ["its", "the", "opecs", "2nd", "mp3"]
    assert words_of("日本 x 語") == ["日本"]


def test_clusters_have_names():
    g = GraphHAC.from_graph(([1, 3], [2, 4], [0.9, 0.8]), [1, 2, 3, 4])
    clusters = g.clusters(0.3)
    assert clusters.names is None
    assert clusters[0].name is None
    assert "name" not in clusters.to_pandas()
    named = clusters.named(["oil crude", "crude", "gold", "gold"])
    assert named.names == ("crude, oil", "gold")
    assert named[1].name == "gold"
    assert named[1].to_dict()["name"] == "gold"
    assert "(gold)" in repr(named[1])
    assert "crude, oil" in repr(named)
    assert named.to_pandas()["name"].tolist() == ["crude, oil", "gold"]
    assert [cluster.name for cluster in named.largest(2)] == ["crude, oil", "gold"]
    with pytest.raises(ValueError, match="texts has 1 entry"):
        clusters.named(["oil"])


def test_names_from_payloads(tmp_path):
    with dynhac.open(tmp_path / "a", n_neighbors=2) as model:
        titles = ["oil crude", "crude", "gold", "gold"]
        payloads = [{"title": title, "about": {"by": "me"}} for title in titles]
        model.insert([[0.0], [0.1], [5.0], [5.1]], payload=payloads)
        clusters = model.clusters(0.5)
        assert clusters.named(model.texts(clusters.ids, "title")).names == ("crude, oil", "gold")
        assert model.texts([0, 9], "about.by") == ["me", None]
        assert model.texts([0]) == ["oil crude me"]
