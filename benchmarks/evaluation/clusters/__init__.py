"""Clusters without a threshold: the choice of ours beside HDBSCAN, FISHDBC and the best cut.

A part of the evaluation with a plan, jobs and results of its own. Its jobs read points, not
streams, so that the time from scratch includes the search for neighbours, and several can run side
by side.
"""
