"""What a watch with patience must report, from scratch, over the sequence of raw clusterings.

Everything is computed anew from all points in every update, with dicts.
"""

from collections import Counter


class PatienceOracle:
    """Follows raw labels ``{point: raw cluster or -1}``; ``reported`` is what must be reported."""

    def __init__(self, raw, patience):
        self.patience = patience
        self.reported = dict(raw)
        self.next = max(raw.values(), default=-1) + 1
        self.match = {c: c for c in raw.values() if c >= 0}  # reported: raw
        self.since = {}  # ("reported" or "raw", cluster): since when it waits

    def update(self, raw, now):
        """Take the raw labels after an update."""
        known = {p: self.reported[p] for p in raw if p in self.reported}
        shared = Counter((t, raw[p]) for p, t in known.items() if t >= 0 and raw[p] >= 0)
        match = {}
        for t, r in sorted(shared, key=lambda pair: (-shared[pair], *pair)):
            if t not in match and r not in match.values():
                match[t] = r
        reported_ids = {t for t in known.values() if t >= 0}
        raws = {r for r in raw.values() if r >= 0}
        waiting = {("reported", t) for t in reported_ids - match.keys()}
        waiting |= {("raw", r) for r in raws - set(match.values())}
        self.since = {one: self.waited(one, match, now) for one in sorted(waiting)}
        due = {one for one, since in self.since.items() if now - since >= self.patience}
        matched = {r: t for t, r in match.items()}
        sizes = Counter(raw.values())
        born = sorted((r for kind, r in due if kind == "raw"), key=lambda r: (-sizes[r], r))
        for r in born:
            matched[r] = self.next
            self.next += 1
        reported = {}
        for p, r in raw.items():
            t = known.get(p)
            if r in born:
                reported[p] = matched[r]
            elif r >= 0 and r not in matched:  # beginning
                reported[p] = self.most(known, raw, r) if t is None else t
            elif t is not None and ("reported", t) in self.since and ("reported", t) not in due:
                reported[p] = t  # ending
            else:
                reported[p] = matched.get(r, -1)
        for one in due:
            del self.since[one]
        self.reported, self.match = reported, {t: r for r, t in matched.items()}

    def waited(self, one, match, now):
        """Since when a cluster waits; time passes along alternating paths of matches."""
        before = {("reported", t): ("raw", r) for t, r in self.match.items()}
        before |= {b: a for a, b in before.items()}
        after = {("reported", t): ("raw", r) for t, r in match.items()}
        after |= {b: a for a, b in after.items()}
        while one is not None:
            if one in self.since:
                return self.since[one]
            one = after.get(before.get(one))
        return now

    def most(self, known, raw, r):
        """The reported cluster of most points of a raw cluster; -1 loses against any other."""
        counts = Counter(known[p] for p in known if raw[p] == r)
        return min(counts, key=lambda t: (-counts[t], t < 0, t), default=-1)
