"""What users pass to the models, read into plain columns and checked."""
