"""The published evaluation, repeated and extended: what to run, how it is scored, what it shows.

``data`` and ``protocols`` say which points come and go; ``plan`` lists the jobs and ``run`` runs
them, each in a process of its own (``job``); ``scores`` compares clusterings; ``tables``,
``figures`` and ``report`` write the results down. The command is ``benchmarks/paper.py``.
"""
