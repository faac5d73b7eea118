"""Tokens: who may read, and who may write.

A token file has one token a line: a role, ``read`` or ``write``, and the token. A token to write
may read too. Empty lines, and lines that begin with ``#``, are ignored. Only digests are kept in
memory, and every comparison takes the same time, whatever is given.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable
from pathlib import Path

ROLES = ("read", "write")
SHORTEST = 16


class Tokens:
    """The tokens of a service.

    Examples
    --------
    >>> from dynhac.serve.tokens import Tokens
    >>> tokens = Tokens([("read", "r" * 32), ("write", "w" * 32)])
    >>> tokens.role_of("w" * 32), tokens.role_of("x" * 32)
    ('write', None)
    """

    def __init__(self, tokens: Iterable[tuple[str, str]]) -> None:
        self._digests = [(role, _digest(token)) for role, token in tokens]
        if not self._digests:
            raise ValueError("there are no tokens; a line of a token file is: read|write TOKEN")

    def role_of(self, token: str) -> str | None:
        """Return "read" or "write", or None for an unknown token."""
        given, found = _digest(token), None
        for role, digest in self._digests:
            if hmac.compare_digest(given, digest):
                found = role
        return found

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Tokens:
        """Return the tokens in a file; ValueError: the file is not right, or others can read it."""
        file = Path(path)
        if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise ValueError(f"{file} can be read by others; change that with: chmod 600 {file}")
        tokens = []
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in ROLES:
                raise ValueError(f"line {number} of {file} is not: read TOKEN, or write TOKEN")
            if len(words[1]) < SHORTEST or not words[1].isascii():
                raise ValueError(
                    f"the token in line {number} of {file} must have at least {SHORTEST} ASCII "
                    "characters; make one with: openssl rand -hex 32"
                )
            tokens.append((words[0], words[1]))
        return cls(tokens)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
