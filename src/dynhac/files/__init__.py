"""Models in files, pickles and copies."""
