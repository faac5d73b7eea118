"""Generated news that keep coming, to see the service live.

Topics come up, last for a while and fade; some come back. A headline says who does what to what,
where or when. It becomes a vector by the counts of its groups of three and four letters, so that
similar headlines are near. All follows from a seed, except for the clock.
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
    "day": ("Monday", "Tuesday", "Friday", "Sunday"),
}
ENDS = ("", "", "in {country}", "near {city}", "on {day}", "for {number} days", "until {day}")
"""Where and when: the same for all topics."""
TOPICS: dict[str, tuple[str, str, str]] = {
    "coffee": (
        "Coffee growers|Coffee traders|Coffee farmers|Exporters of coffee",
        "fear|expect|report|face|discuss",
        "a poor harvest|frost|a late bean harvest|falling bean prices|higher bean prices",
    ),
    "oil": (
        "Oil ministers|Oil producers|Crude oil traders|Refiners of crude oil",
        "debate|welcome|reject|ignore|discuss",
        "output cuts|a price of {number} dollars a barrel|higher crude output|lower barrel prices",
    ),
    "strike": (
        "Dock workers|Port workers|Striking dockers|Crane drivers in the port",
        "extend|plan|end|vote for|prepare",
        "a strike over wages|the port strike|a longer dock strike|the strike for higher wages",
    ),
    "rates": (
        "Central banks|Governors of the bank|Bank economists|Two central bankers",
        "see|expect|rule out|prefer|argue for",
        "a cut of the lending rate|higher lending rates|a stable rate|a lower lending rate",
    ),
    "flood": (
        "Flood waters|Floods after heavy rain|Swollen rivers|River floods",
        "reach|threaten|damage|cut off|recede from",
        "{number} river villages|bridges and roads|the river dam|farms on the river",
    ),
    "football": (
        "Rovers|United|The cup holders|Wanderers",
        "win|lose|draw|dominate|await",
        "the cup final|a cup match|the football derby|the semi-final of the cup",
    ),
    "election": (
        "Voters|Election officials|Opposition parties|Election observers",
        "await|question|accept|discuss|recount",
        "the election result|a close vote|early polls of the election|the second ballot",
    ),
    "space": (
        "Moon landers|Lunar probes|Engineers of the moon probe|Two moon rovers",
        "photograph|map|circle|leave|study",
        "the far side of the moon|a lunar crater|the lunar orbit|moon dust",
    ),
    "museum": (
        "Museum curators|Museums|Directors of the museum|Art museums",
        "return|lend|show|buy|examine",
        "stolen bronzes|ancient bronzes|the museum bronzes|looted museum art",
    ),
    "trains": (
        "Night trains|Sleeper trains|Railway companies|Railways",
        "return to|announce|add|test|cancel",
        "night routes|sleeper carriages|more night trains|the railway timetable",
    ),
    "bees": (
        "Beekeepers|Honey farmers|Bee researchers|Beekeepers with {number} hives",
        "protect|lose|inspect|count|move",
        "hives with mites|their bee hives|honey bees|weak bee colonies",
    ),
    "chips": (
        "Chip makers|Chip factories|Makers of computer chips|Chip designers",
        "increase|delay|cancel|double|announce",
        "chip output|orders of new chips|plans for a chip factory|chip investments",
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
        parts = (*(part.split("|") for part in TOPICS[topic]), ENDS)
        template = " ".join(str(self._rng.choice(part)) for part in parts).strip()
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

    def many(count: int, ago: int = 0) -> tuple[list[Story], list[datetime]]:
        """Return headlines; the first came ``ago`` arrivals before now."""
        now = datetime.now(timezone.utc)
        stories = [news.next() for _ in range(count)]
        return stories, [now - timedelta(seconds=PAUSE * (ago - i)) for i in range(count)]

    try:
        first = 0 if len(model) else FIRST
        for done in range(0, first, 10):
            given = many(10, first - done)
            await writer.submit(lambda given=given: update(*given), None, b"")  # type: ignore[misc]
        while not service.hub.closed:
            await asyncio.sleep(PAUSE)
            given = many(1)
            await writer.submit(lambda given=given: update(*given), None, b"")  # type: ignore[misc]
    except Exception:
        logging.getLogger("dynhac.serve").exception("the demo has ended")
