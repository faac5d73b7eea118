"""Temporary files and folders of processes that were killed before they could remove them.

The name of a temporary file contains the id of its process. The next process that writes to the
same place removes those of processes that have ended.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress


def remove_leftovers(folder: str | os.PathLike[str], name: re.Pattern[str]) -> None:
    """Remove what has a matching name, whose first group is the id of a process that has ended."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = name.fullmatch(entry.name)
            if found is None or _is_running(int(found[1])):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with suppress(OSError):
                    os.unlink(entry.path)


def _is_running(process: int) -> bool:
    if os.name != "posix":
        return True  # there is no harmless way to ask
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True
