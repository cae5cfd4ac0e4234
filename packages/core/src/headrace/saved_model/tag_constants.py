"""Tags that say what a graph of a saved model is for, as ``hr.saved_model.tag_constants``."""

SERVING = "serve"
TRAINING = "train"
GPU = "gpu"
TPU = "tpu"
