"""Points: vectors that come and go, kept as a graph of nearest neighbours and its hierarchy.

`model` is what users see, `pointgraph` the parts that change together, and `attempt` one batch on
its way through them. `batch`, `vectors` and `timestamps` read what users give; `store` holds the
points, `windows` their ages, `found` looks at what users' indexes answer, `state` knows files and
copies.
"""
