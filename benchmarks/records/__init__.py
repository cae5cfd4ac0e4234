"""Training on examples from files of records, beside the same training on feeds."""
