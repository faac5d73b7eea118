"""What several benchmarks use: data sets, streams, processes, scores, Markdown."""
