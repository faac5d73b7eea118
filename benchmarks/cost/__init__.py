"""What dynhac costs: CPU time, memory and quality of updates of graphs, points and stores.

``updates``, ``points`` and ``store`` measure, each job in a process of its own (``measure_*``), and
write ``results/*.json``; ``tables`` and ``charts`` show these in the documentation. ``threads``
measures what several threads bring. ``compare`` compares two versions of dynhac.
"""
