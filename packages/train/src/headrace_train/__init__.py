"""Training with Headrace: optimizers, queues, checkpoints, datasets."""
