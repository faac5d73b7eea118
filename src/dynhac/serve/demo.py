"""Generated news that keep coming, to see the service live.

Topics come up, last for a while and fade; some come back. A headline becomes a vector by the counts
of its groups of three and four letters, so that similar headlines are near. All follows from a
seed, except for the clock.
"""

from __future__ import annotations

import asyncio
import logging
import re
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dynhac.serve.service import Service

DIMENSION = 256
MOST_POINTS = 2_000
FIRST = 300
"""Headlines that are there from the start."""
PAUSE = 0.4
"""Seconds between two arrivals."""
LIFE = (120, 400)
"""How many headlines a topic lasts for."""
AT_ONCE = 7
"""Topics in the news at a time."""
PARAMETERS: dict[str, Any] = {
    "metric": "cosine",
    "similarity": "cosine",
    "n_neighbors": 15,
    "max_points": MOST_POINTS,
}

WORDS: dict[str, Sequence[str]] = {
    "number": ("three", "five", "twelve", "forty", "ninety", "two hundred"),
    "country": ("Brazil", "Kenya", "Norway", "Vietnam", "Mexico", "Canada", "Ghana"),
    "city": ("Lisbon", "Osaka", "Nairobi", "Lima", "Boston", "Madrid", "Oslo"),
    "day": ("Monday", "Tuesday", "Friday", "the weekend"),
    "team": ("Rovers", "United", "Athletic", "Wanderers"),
    "bank": ("central bank", "reserve bank", "national bank"),
}
TOPICS: dict[str, Sequence[str]] = {
    "coffee": (
        "Coffee growers in {country} expect a poor harvest",
        "Coffee prices rise as {country} cuts its harvest forecast",
        "Coffee exports of {country} fall by {number} percent",
    ),
    "oil": (
        "Crude oil output of {country} rises by {number} percent",
        "Oil ministers meet in {city} to discuss crude output",
        "Crude oil prices steady before the meeting in {city}",
    ),
    "strike": (
        "Dock workers in {city} strike for {number} days",
        "Strike of dock workers closes the port of {city}",
        "Talks about the dock strike in {city} break off",
    ),
    "rates": (
        "The {bank} of {country} cuts its lending rate",
        "Lending rate of the {bank} stays where it is until {day}",
        "Markets expect the {bank} to raise the lending rate",
    ),
    "flood": (
        "River floods {number} villages near {city}",
        "Flood water recedes in {city} after heavy rain",
        "Heavy rain in {country}: flood warning for {city}",
    ),
    "football": (
        "{team} beat {team} in the cup final in {city}",
        "Cup final: {team} lose to {team} after extra time",
        "{team} sign a striker from {country} before the cup",
    ),
    "election": (
        "Voters in {country} go to the polls on {day}",
        "Election in {country}: {number} parties on the ballot",
        "Polls in {country} show a close election",
    ),
    "space": (
        "Probe sends first pictures from the far side of the moon",
        "Launch of the moon probe put off until {day}",
        "Moon probe of {country} enters orbit",
    ),
    "museum": (
        "Museum in {city} returns {number} bronzes to {country}",
        "Stolen bronzes on show in the museum of {city}",
        "{country} asks a museum in {city} to return bronzes",
    ),
    "trains": (
        "Night trains from {city} to {city} start on {day}",
        "Railway orders {number} night trains",
        "Night trains between {city} and {city} are booked out",
    ),
    "bees": (
        "Beekeepers in {country} lose {number} percent of their hives",
        "Mite threatens the hives of beekeepers near {city}",
        "Beekeepers ask {country} for help against the mite",
    ),
    "chips": (
        "Chip maker plans a factory near {city}",
        "Chip shortage stops car factories in {country}",
        "{country} supports its chip makers with {number} billion",
    ),
}


class Story(NamedTuple):
    """A headline, its topic and its vector."""

    text: str
    topic: str
    vector: NDArray[np.float32]


class News:
    """A stream of headlines."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._topics: dict[str, int] = {}  # how many headlines are left

    def next(self) -> Story:
        """Return the next headline."""
        while len(self._topics) < AT_ONCE:
            waiting = [topic for topic in TOPICS if topic not in self._topics]
            self._topics[str(self._rng.choice(waiting))] = int(self._rng.integers(*LIFE))
        topic = str(self._rng.choice(list(self._topics)))
        self._topics[topic] -= 1
        if not self._topics[topic]:
            del self._topics[topic]
        template = str(self._rng.choice(list(TOPICS[topic])))
        text = re.sub(r"{(\w+)}", lambda gap: str(self._rng.choice(WORDS[gap[1]])), template)
        return Story(text, topic, vector_of(text))


def vector_of(text: str) -> NDArray[np.float32]:
    """Return the vector of a text, of length 1."""
    counts = np.zeros(DIMENSION, np.float32)
    spaced = f" {' '.join(text.lower().split())} "
    for n in (3, 4):
        for start in range(len(spaced) - n + 1):
            counts[zlib.crc32(spaced[start : start + n].encode()) % DIMENSION] += 1
    vector: NDArray[np.float32] = np.sqrt(counts)
    vector /= np.linalg.norm(vector)
    return vector


async def feed(service: Service) -> None:
    """Insert headlines into a service, the first ones at once, until it ends."""
    news, writer = News(), service.require_writer()
    model = service.points()

    def update(stories: list[Story], times: list[datetime]) -> dict[str, Any]:
        stamps = np.array([time.replace(tzinfo=None) for time in times], "M8[ms]")
        payload = [{"text": story.text, "topic": story.topic} for story in stories]
        vectors = np.array([story.vector for story in stories])
        ids = model.insert(vectors, timestamps=stamps, payload=payload)
        return {"ids": ids.tolist()}

    def many(count: int) -> tuple[list[Story], list[datetime]]:
        now = datetime.now(timezone.utc)
        stories = [news.next() for _ in range(count)]
        return stories, [now - timedelta(seconds=PAUSE * i) for i in range(count)][::-1]

    try:
        first = 0 if len(model) else FIRST
        for _ in range(0, first, 10):
            given = many(10)
            await writer.submit(lambda given=given: update(*given), None, b"")  # type: ignore[misc]
        while not service.hub.closed:
            await asyncio.sleep(PAUSE)
            given = many(1)
            await writer.submit(lambda given=given: update(*given), None, b"")  # type: ignore[misc]
    except Exception:
        logging.getLogger("dynhac.serve").exception("the demo has ended")
