"""The models: `GraphHAC` of a weighted graph, `DynHAC` of points."""
