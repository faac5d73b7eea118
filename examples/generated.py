"""Generated data with known classes: sentences with intents, news, messages, citations.

All data follow from a fixed seed. The vectors depend on the spelling of the texts only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from data import Arrays, text_vectors

SEED = 0
FIRST_DAY = float(np.datetime64("2025-01-01", "s").astype(np.int64))

WORDS: dict[str, Sequence[str]] = {
    "account": ("savings", "checking", "joint", "business", "holiday", "student", "euro", "family"),
    "amount": ("ten", "fifty", "eighty", "two hundred", "one thousand"),
    "person": ("anna", "my brother", "the landlord", "mr miller", "tom"),
    "card": ("credit", "debit", "visa", "bank", "new"),
    "city": ("boston", "berlin", "madrid", "osaka", "nairobi", "lima"),
    "day": ("monday", "tomorrow", "the weekend", "next friday", "tonight"),
    "song": ("yesterday", "take five", "blue moon", "summertime", "hallelujah"),
    "room": ("kitchen", "bedroom", "garden", "bathroom", "office", "hall", "garage", "cellar"),
    "number": ("12", "35", "60", "85", "140", "210"),
    "country": ("brazil", "colombia", "kenya", "indonesia", "mexico"),
}

INTENTS: dict[str, Sequence[str]] = {
    "bank/balance": (
        "how much money is in my {account} account",
        "what is the balance of my {account} account",
        "tell me the balance of the {account} account please",
    ),
    "bank/transfer": (
        "transfer {amount} dollars from my {account} account to {person}",
        "send {amount} dollars to {person} from the {account} account",
        "please pay {person} {amount} dollars from my account",
    ),
    "bank/lost card": (
        "i lost my {card} card in {city}, please block the card",
        "my {card} card was stolen, please block my lost card",
        "block the {card} card, i lost it on {day}",
    ),
    "travel/flight": (
        "book a flight to {city} for {day}",
        "find me a cheap flight to {city} on {day}",
        "i need a flight from {city} to {city} on {day}",
    ),
    "travel/hotel": (
        "book a hotel in {city} for {day}",
        "find me a cheap hotel in {city} on {day}",
        "i need a hotel room in {city} from {day}",
    ),
    "weather/rain": (
        "will it rain in {city} on {day}",
        "does the weather forecast say rain in {city} for {day}",
        "do i need an umbrella, will it rain in {city} on {day}",
    ),
    "weather/temperature": (
        "how warm will it be in {city} on {day}",
        "what temperature does the weather forecast say for {city} on {day}",
        "what is the temperature in {city} on {day}",
    ),
    "home/music": (
        "play the song {song} in the {room}",
        "i want to hear the song {song} in the {room}",
        "turn on the music in the {room} and play {song}",
    ),
    "home/light": (
        "turn off the light in the {room}",
        "turn on the light in the {room} please",
        "make the light in the {room} brighter on {day}",
    ),
}

# From which to which of 20 days a topic is in the news, how many stories a day it has, and which.
NEWS: dict[str, tuple[int, int, int, Sequence[str]]] = {
    "coffee": (
        *(0, 9, 5),
        (
            "COFFEE QUOTA TALKS IN LONDON GO ON, {country} WANTS {number} PCT",
            "{country} REJECTS COFFEE EXPORT QUOTA AT LONDON TALKS",
            "COFFEE PRICES FALL AS QUOTA TALKS WITH {country} FAIL",
        ),
    ),
    "oil": (
        *(0, 20, 5),
        (
            "OPEC CRUDE OIL OUTPUT SEEN AT {number} MLN BARRELS",
            "CRUDE OIL PRICES RISE {number} CTS A BARREL ON OPEC OUTPUT",
            "OPEC MINISTERS SEE CRUDE OIL PRICES STEADY AT {number} DLRS A BARREL",
        ),
    ),
    "strike": (
        *(4, 13, 4),
        (
            "SEAMEN'S STRIKE SHUTS PORTS OF {country}",
            "STRIKING SEAMEN OF {country} REJECT {number} PCT PAY OFFER",
            "PORTS OF {country} IDLE, SEAMEN'S STRIKE ENTERS NEW WEEK",
        ),
    ),
    "tankers": (
        *(8, 14, 5),
        (
            "TANKER HIT BY MISSILE IN GULF, {number} CREW SAFE",
            "MISSILE ATTACK SETS TANKER ON FIRE IN GULF",
            "NAVY TO ESCORT {number} TANKERS THROUGH GULF AFTER MISSILE ATTACK",
        ),
    ),
    "oil and tankers": (
        *(14, 20, 8),
        (
            "CRUDE OIL PRICES RISE {number} CTS A BARREL ON TANKER ATTACK IN GULF",
            "OPEC CRUDE OIL OUTPUT HIT BY MISSILE ATTACK ON GULF TANKER",
            "GULF TANKER ATTACKS LIFT OPEC CRUDE OIL PRICES TO {number} DLRS A BARREL",
        ),
    ),
    "rates": (
        *(2, 20, 4),
        (
            "BANK OF ENGLAND CUTS LENDING RATE BY {number} POINTS",
            "BANKS CUT PRIME LENDING RATE AFTER BANK OF ENGLAND",
            "BANK OF ENGLAND SEES NO NEED TO CUT LENDING RATE BEFORE {number} DAYS",
        ),
    ),
}

AUTHORS = (
    *("Anna Keller", "Rajiv Menon", "Louise Harper", "Tom Okafor", "Ines Duarte", "Paul Brandt"),
    *("Mei Chen", "Olga Petrova", "David Stein", "Sara Lindqvist", "Jorge Campos", "Emma Walsh"),
)
SUBJECTS = (
    *("decision trees", "belief networks", "inductive logic", "genetic search", "data bases"),
    *("case libraries", "neural networks", "planning", "version spaces", "text retrieval"),
)
APPROACHES = (
    *("Learning {} from examples", "Pruning {} under noise", "On the complexity of {}"),
    *("Fast induction of {}", "Incremental {} revisited", "A theory of {} and its limits"),
)
USES = (
    *("medical diagnosis", "chess endgames", "speech", "robot navigation", "credit scoring"),
    *("weather records", "protein folding", "crop disease", "handwriting", "telephone networks"),
)
VENUES = (
    ("Proceedings of the International Conference on Machine Learning", "Proc. Int. Conf. ML"),
    ("Journal of Artificial Intelligence Research", "J. Artif. Intell. Res."),
    ("Technical Report, Department of Computer Science", "Tech. Rep., Dept. of CS"),
)


def filled(template: str, rng: np.random.Generator) -> str:
    """Return a template with a random word in each of its placeholders."""
    return re.sub(r"{(\w+)}", lambda gap: str(rng.choice(WORDS[gap.group(1)])), template)


def misspelt(text: str, mistakes: int, rng: np.random.Generator) -> str:
    """Return a text with some letters deleted or swapped with the next letter."""
    letters = list(text)
    for i in rng.integers(0, len(letters) - 1, mistakes):
        if rng.random() < 0.5:
            letters[i : i + 2] = letters[i + 1], letters[i]
        else:
            letters[i] = ""
            letters.append("")  # keeps the length, so that all positions stay valid
    return "".join(letters)


def sentences(each: int = 80) -> Arrays:
    """Return sentences that people say to an assistant, with the intent as their class."""
    rng = np.random.default_rng(SEED)
    pairs = [
        (filled(str(rng.choice(templates)), rng), y)
        for y, templates in enumerate(INTENTS.values())
        for _ in range(each)
    ]
    text, y = map(list, zip(*dict.fromkeys(pairs), strict=True))  # each sentence once
    return {
        "X": text_vectors(text),
        "y": np.array(y),
        "text": np.array(text),
        "classes": np.array(list(INTENTS)),
    }


def news() -> Arrays:
    """Return headlines in order of time; topics begin and end, and two of them merge."""
    rng = np.random.default_rng(SEED)
    stories = [
        (day + rng.random(), filled(str(rng.choice(templates)), rng).upper(), y)
        for y, (first, last, daily, templates) in enumerate(NEWS.values())
        for day in range(first, last)
        for _ in range(daily)
    ]
    time, title, y = map(list, zip(*sorted(stories), strict=True))
    return {
        "X": text_vectors(title),
        "y": np.array(y),
        "time": np.array(time) * 86_400.0 + FIRST_DAY,
        "title": np.array(title),
        "classes": np.array(list(NEWS)),
    }


def messages(count: int = 300, repeated: float = 0.3) -> Arrays:
    """Return messages to a help desk; some are repeated with different typing errors."""
    rng = np.random.default_rng(SEED)
    templates = [template for several in INTENTS.values() for template in several]
    title: list[str] = []
    y: list[int] = []
    for message in range(count):
        parts = rng.choice(templates, 3, replace=False).tolist()
        text = ", ".join(filled(part, rng) for part in parts)
        for _ in range(1 + int(rng.random() < repeated) * int(rng.integers(1, 4))):
            title.append(misspelt(text, int(rng.integers(0, 4)), rng))
            y.append(message)
    order = np.argsort(np.array(y) + rng.exponential(20.0, len(y)), kind="stable")
    titles = np.array(title)[order]
    return {"X": text_vectors(titles.tolist()), "y": np.array(y)[order], "title": titles}


def citations(works: int = 60) -> Arrays:
    """Return citations of papers with typing errors; the class is the paper cited."""
    rng = np.random.default_rng(SEED)
    text, y = [], []
    for work in range(works):
        authors = rng.choice(AUTHORS, rng.integers(1, 4), replace=False).tolist()
        title = str(rng.choice(APPROACHES)).format(rng.choice(SUBJECTS))
        title += f", with applications to {rng.choice(USES)}"
        venue, year = VENUES[rng.integers(len(VENUES))], int(rng.integers(1985, 2000))
        for _ in range(rng.integers(2, 9)):
            names = ", ".join(map(_initials if rng.random() < 0.5 else str, authors))
            typed = f"{names} ({year}). {title}. {venue[int(rng.integers(2))]}"
            text.append(misspelt(typed, int(rng.integers(0, 4)), rng))
            y.append(work)
    return {"X": text_vectors(text), "y": np.array(y), "text": np.array(text)}


def _initials(name: str) -> str:
    first, last = name.split()
    return f"{last}, {first[0]}."
