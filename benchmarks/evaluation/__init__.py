"""The evaluation of the DynHAC paper, repeated and extended; the command is ``paper``.

``data`` and ``protocols`` define the streams; ``plan`` lists the jobs and ``run`` runs them, each
in a process of its own (``job``); ``scores`` compares clusterings; ``tables``, ``figures`` and
``report`` write the page docs/evaluation/index.md from ``results/*.json``.
"""
