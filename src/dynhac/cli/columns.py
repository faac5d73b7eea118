"""Which columns of a table the vectors of a store are made of, and in which order.

A store of points knows no names of columns. Where the file that it was built from had some, a file
beside the store's own keeps them, and later files may have the columns in another order.
"""

from __future__ import annotations

import json
from pathlib import Path

from dynhac.cli.data import Data

FILE = "columns.json"


def keep_names(folder: Path, rows: Data) -> None:
    """Write the names down, if the file had names."""
    if rows.names is not None:
        (folder / FILE).write_text(json.dumps(rows.names) + "\n", encoding="utf-8")


def in_order(folder: Path, rows: Data) -> Data:
    """Return rows with their columns in the order of the store, or raise if they have others."""
    if rows.names is None or rows.vectors is None or not (folder / FILE).exists():
        return rows
    try:
        names = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{folder / FILE} is damaged; it must be a list of the names of columns")
    if rows.names == names:
        return rows
    if sorted(rows.names) != sorted(names):
        raise ValueError(
            f"{rows.source} has the columns {', '.join(rows.names)}, but the vectors of {folder} "
            f"are made of {', '.join(names)}"
        )
    order = [rows.names.index(name) for name in names]
    return Data(**(rows._asdict() | {"vectors": rows.vectors[:, order], "names": names}))
