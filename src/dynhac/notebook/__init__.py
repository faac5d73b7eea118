"""What notebooks show of models, dendrograms, watches and changes: HTML made on request."""
