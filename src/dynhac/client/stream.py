"""Server-sent events, line by line."""

from __future__ import annotations

import json
from typing import Any


class Events:
    """Reads the lines of a stream, and remembers the id of the last event."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self._kind = ""
        self._id: int | None = None
        self._data: list[str] = []

    def line(self, line: str) -> dict[str, Any] | None:
        """Take a line; return an event if it ends one.

        Messages ``update``, which only tell that the state has changed, are none.
        """
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "id" and value.isdigit():
            self._id = int(value)
        elif name == "data":
            self._data.append(value)
        elif not line:
            return self._end()
        return None

    def begin(self) -> None:
        """Begin with a new connection: drop what was not complete."""
        self._kind, self._id, self._data = "", None, []

    def _end(self) -> dict[str, Any] | None:
        kind, id, data = self._kind, self._id, self._data
        self.begin()
        if id is not None:
            self.last = id
        if kind != "cluster" or not data:
            return None
        return {"id": id, **json.loads("\n".join(data))}
