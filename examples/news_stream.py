"""News topics that begin, merge, split and end: ``python examples/news_stream.py --data FOLDER``.

Stories are inserted in order of time, a few at a time, and expire when newer ones fill the window.
A watch follows the clusters at one similarity. It reports what every batch did to them, and draws a
timeline at the end. Needs the extra ``dynhac[demo]``.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data import Arrays, arguments, load
from dynhac import DynHAC, Event
from generated import news

LEFT_OUT = ("earn", "acq")  # company results and takeovers: frequent, and all alike


class Topics:
    """The stories in a sliding window, and their topics."""

    def __init__(
        self, data: Arrays, window: int, theta: float, min_size: int, patience: int = 0
    ) -> None:
        self.data = data
        self.model = DynHAC(
            metric="cosine",
            similarity="cosine",
            n_neighbors=20,
            threshold=theta / 2,
            max_points=window,
        )
        self.watch = self.model.watch(theta, min_size=min_size, patience=patience)
        self.names: dict[int, str] = {}  # of each topic, from the time when it was largest
        self.peaks: dict[int, int] = {}  # largest size of each topic
        self.known: set[int] = set()  # stories that have been in a topic

    def insert(self, rows: NDArray[np.int64]) -> list[str]:
        """Insert stories and return lines about what that did to the topics."""
        times = self.data["time"][rows].astype("datetime64[s]")
        self.model.insert(self.data["X"][rows], ids=rows, timestamps=times)
        for topic, size in self.watch.clusters().items():
            if size > self.peaks.get(topic, 0):
                self.peaks[topic] = size
                self.names[topic] = self.headline(self.watch.cluster(topic).medoid)
        lines = [line for event in self.watch.events if (line := self.line(event))]
        for event in self.watch.events:
            self.known.update(event.points.tolist())
        return lines

    def headline(self, row: int) -> str:
        """Return the headline of a story, in short."""
        title = str(self.data["title"][row])
        first = re.split(r"(?<=[^.\s]{3})\. ", title)[0]  # "U.S." does not end a sentence
        return first[:52].rstrip()

    def line(self, event: Event) -> str | None:
        """Return a line about an event; None if only few stories moved."""
        if len(event.points) < self.watch.min_size:
            return None
        name = self.names[event.cluster]
        others = " + ".join(self.names[other] for other in event.others)
        if event.kind == "born" and not event.others:
            if len(self.known.intersection(event.points.tolist())) > len(event.points) / 2:
                return None  # an old topic that had fallen below min_size
            return f"new    {event.size:4}  {name}"
        if event.kind == "merged":
            return f"merged {event.size:4}  {name} <- {others}"
        if event.kind == "split":
            return f"split  {event.size:4}  {name} -> {others}"
        return None

    def draw(self, file: Path) -> None:
        """Draw all topics over time, named by their headlines."""
        import matplotlib

        matplotlib.use("Agg")
        labels = {topic: name.lower() for topic, name in self.names.items()}
        axes = self.watch.plot_timeline(max_clusters=16, labels=labels)
        file.parent.mkdir(parents=True, exist_ok=True)
        axes.figure.savefig(file, dpi=120)


def main() -> None:
    """Insert the news and print what happens to the topics."""
    from tqdm import tqdm

    parser = arguments(__doc__)
    parser.add_argument("--window", type=int, help="stories in the window")
    parser.add_argument("--theta", type=float, help="similarity at which to cut into topics")
    parser.add_argument("--min-size", type=int, help="stories that a topic has at least")
    parser.add_argument(
        "--patience", type=int, default=0, help="batches that a change lasts before it is reported"
    )
    parser.add_argument("--batch", type=int, help="stories in a batch")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output"), help="folder for the picture"
    )
    options = parser.parse_args()
    data = load(options.data, "reuters_minilm384", news)
    window = options.window or (100 if options.data is None else 1_000)
    theta = options.theta or (0.2 if options.data is None else 0.05)
    min_size = options.min_size or (8 if options.data is None else 25)
    batch = options.batch or (10 if options.data is None else 25)

    kept = np.flatnonzero(~np.isin(data["classes"][data["y"]], LEFT_OUT))
    day = data["time"].astype("datetime64[s]").astype("datetime64[D]")
    topics = Topics(data, window, theta, min_size, options.patience)
    batches = np.split(kept, np.arange(batch, len(kept), batch))
    with tqdm(total=len(kept), unit=" stories", ncols=88, disable=None) as bar:
        for rows in batches:
            for line in topics.insert(rows):
                bar.write(f"{day[rows[-1]]}  {line}")
            bar.update(len(rows))

    print("\nTopics at the end:")
    for topic, size in sorted(topics.watch.clusters().items(), key=lambda item: -item[1])[:10]:
        classes, counts = np.unique(data["y"][topics.watch.members(topic)], return_counts=True)
        main_class = data["classes"][classes[counts.argmax()]]
        print(f"  {size:4}  {topics.names[topic]:52}  {counts.max() / size:4.0%} {main_class}")
    file = options.out / "news.png"
    topics.draw(file)
    print(f"\nTimeline: {file}")


if __name__ == "__main__":
    main()
