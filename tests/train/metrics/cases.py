"""Metrics over several batches that TensorFlow 1.15 and Headrace both compute.

Each case is a function of the library, ``tensorflow`` or ``headrace``, and of the batch, a dict of
tensors. It must run on Python 3.7, for which TensorFlow 1.15 was made; ``generate_tables.py`` runs
it there.
"""

from __future__ import annotations

import numpy as np

BATCHES = 3


def batches():
    """What the cases are fed: dicts of arrays of the same kinds."""
    found = []
    for number in range(BATCHES):
        rng = np.random.RandomState(40 + number)
        labels = rng.normal(size=(4, 3))
        units = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, 4, 3))]
        found.append(
            {
                "values": rng.normal(size=(4, 3)).astype(np.float32),
                "labels": labels.astype(np.float32),
                "predictions": (labels + 0.3 * rng.normal(size=(4, 3))).astype(np.float32),
                "scale": np.where(rng.rand(4, 3) < 0.2, 0, 1 + rng.rand(4, 3)).astype(np.float32),
                "unit_labels": units[0].astype(np.float32),
                "unit_predictions": units[1].astype(np.float32),
                "weights": rng.choice([0.0, 0.5, 1.0, 2.0], size=(4, 3)).astype(np.float32),
                "row_weights": rng.choice([0.0, 0.5, 2.0], size=(4, 1)).astype(np.float32),
                "vector_weights": rng.choice([0.5, 1.0, 2.0], size=4).astype(np.float32),
                "class_labels": rng.randint(0, 4, size=12).astype(np.int64),
                "classes": rng.randint(0, 4, size=12).astype(np.int64),
                "class_weights": rng.choice([0.5, 1.0, 2.0], size=12).astype(np.float32),
                "true": rng.rand(4, 3) < 0.5,
                "guess": rng.rand(4, 3) < 0.6,
                "shares": rng.rand(4, 3).round(2).astype(np.float32),
                "scores": rng.permutation(24).reshape(4, 6).astype(np.float32),
                "sets": np.array([rng.permutation(6)[:2] for _ in range(4)], np.int64),
                "padded": np.array([[1, 2, -1], [3, 3, 7], [0, -1, -1], [5, 4, 2]], np.int64),
                "one": rng.randint(0, 6, size=4).astype(np.int64),
                "ranking": rng.randint(0, 6, size=(4, 3)).astype(np.int64),
            }
        )
    return found


def sparse(tf, batch):
    """The labels ``padded`` without what is negative, as a sparse tensor."""
    indices = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 0], [3, 0], [3, 1], [3, 2]]
    return tf.SparseTensor(indices, tf.gather_nd(batch["padded"], indices), [4, 3])


def _pair(name, first, second, *others):
    """Cases of a metric without weights, with them, and with other shapes of them."""

    def make(weights):
        def case(tf, b):
            given = [b[key] if isinstance(key, str) else key for key in (first, second, *others)]
            return getattr(tf.metrics, name)(*given, weights=weights(b))

        return case

    return {
        name: make(lambda b: None),
        name + "_weights": make(lambda b: b["weights"]),
        name + "_row_weights": make(lambda b: b["row_weights"]),
        name + "_vector_weights": make(lambda b: b["vector_weights"]),
        name + "_scalar": make(lambda b: 2.0),
    }


THRESHOLDS = [0.25, 0.5, 0.75]

CASES = {}
for _name in ("mean_absolute_error", "mean_squared_error", "root_mean_squared_error"):
    CASES.update(_pair(_name, "labels", "predictions"))
CASES.update(_pair("accuracy", "true", "guess"))
for _kind in ("true", "false"):
    for _sign in ("positives", "negatives"):
        CASES.update(_pair(_kind + "_" + _sign, "true", "guess"))
        CASES.update(_pair(_kind + "_" + _sign + "_at_thresholds", "true", "shares", THRESHOLDS))
for _name in ("precision", "recall"):
    CASES.update(_pair(_name, "true", "guess"))
    CASES.update(_pair(_name + "_at_thresholds", "true", "shares", THRESHOLDS))
CASES.update(_pair("auc", "true", "shares"))
CASES.update(_pair("sensitivity_at_specificity", "true", "shares", 0.6))
CASES.update(_pair("specificity_at_sensitivity", "true", "shares", 0.6))
CASES.update(_pair("percentage_below", "values", 0.2))
CASES.update(_pair("mean_relative_error", "labels", "predictions", "scale"))
CASES.update(
    {
        "mean": lambda tf, b: tf.metrics.mean(b["values"]),
        "mean_weights": lambda tf, b: tf.metrics.mean(b["values"], b["weights"]),
        "mean_row_weights": lambda tf, b: tf.metrics.mean(b["values"], b["row_weights"]),
        "mean_integers": lambda tf, b: tf.metrics.mean(b["classes"], name="level"),
        "mean_tensor": lambda tf, b: tf.metrics.mean_tensor(b["values"]),
        "mean_tensor_weights": lambda tf, b: tf.metrics.mean_tensor(b["values"], b["weights"]),
        "mean_cosine_distance": lambda tf, b: tf.metrics.mean_cosine_distance(
            b["unit_labels"], b["unit_predictions"], 1
        ),
        "mean_cosine_distance_weights": lambda tf, b: tf.metrics.mean_cosine_distance(
            b["unit_labels"], b["unit_predictions"], 1, b["row_weights"]
        ),
        "accuracy_classes": lambda tf, b: tf.metrics.accuracy(
            tf.expand_dims(b["class_labels"], 1), tf.cast(b["classes"], tf.float32)
        ),
        "mean_per_class_accuracy": lambda tf, b: tf.metrics.mean_per_class_accuracy(
            b["class_labels"], b["classes"], 5
        ),
        "mean_per_class_accuracy_weights": lambda tf, b: tf.metrics.mean_per_class_accuracy(
            b["class_labels"], b["classes"], 4, b["class_weights"]
        ),
        "mean_iou": lambda tf, b: tf.metrics.mean_iou(b["class_labels"], b["classes"], 5),
        "mean_iou_weights": lambda tf, b: tf.metrics.mean_iou(
            tf.reshape(b["class_labels"], [3, 4]),
            tf.reshape(b["classes"], [3, 4]),
            4,
            tf.reshape(b["class_weights"], [3, 4]),
        ),
        "percentage_below_named": lambda tf, b: tf.metrics.percentage_below(
            b["values"], -0.5, name="below"
        ),
        "auc_thresholds": lambda tf, b: tf.metrics.auc(
            b["true"], b["shares"], thresholds=[0.7, 0.2, 0.4]
        ),
        "auc_few": lambda tf, b: tf.metrics.auc(b["true"], b["shares"], num_thresholds=7),
        "auc_minoring": lambda tf, b: tf.metrics.auc(
            b["true"], b["shares"], num_thresholds=7, summation_method="minoring"
        ),
        "auc_majoring": lambda tf, b: tf.metrics.auc(
            b["true"], b["shares"], b["weights"], 7, summation_method="majoring"
        ),
        "auc_pr": lambda tf, b: tf.metrics.auc(b["true"], b["shares"], curve="PR"),
        "auc_pr_careful": lambda tf, b: tf.metrics.auc(
            b["true"], b["shares"], curve="PR", summation_method="careful_interpolation"
        ),
        "auc_pr_careful_weights": lambda tf, b: tf.metrics.auc(
            b["true"],
            b["shares"],
            b["weights"],
            20,
            curve="PR",
            summation_method="careful_interpolation",
        ),
        "auc_pr_majoring": lambda tf, b: tf.metrics.auc(
            b["true"], b["shares"], num_thresholds=9, curve="PR", summation_method="majoring"
        ),
        "sensitivity_few": lambda tf, b: tf.metrics.sensitivity_at_specificity(
            b["true"], b["shares"], 0.8, num_thresholds=11
        ),
        "specificity_few": lambda tf, b: tf.metrics.specificity_at_sensitivity(
            b["true"], b["shares"], 0.8, num_thresholds=11
        ),
        "precision_at_top_k": lambda tf, b: tf.metrics.precision_at_top_k(b["sets"], b["ranking"]),
        "precision_at_top_k_class": lambda tf, b: tf.metrics.precision_at_top_k(
            b["padded"], b["ranking"], k=3, class_id=2
        ),
        "recall_at_top_k": lambda tf, b: tf.metrics.recall_at_top_k(
            b["padded"], b["ranking"], k=3, weights=b["vector_weights"]
        ),
        "recall_at_top_k_sparse": lambda tf, b: tf.metrics.recall_at_top_k(
            sparse(tf, b), b["ranking"]
        ),
    }
)


def _ranked(name):
    """Cases of a metric of the k largest predictions."""

    def metric(tf):
        return getattr(tf.metrics, name)

    found = {
        "": lambda tf, b: metric(tf)(b["sets"], b["scores"], 3),
        "_one": lambda tf, b: metric(tf)(b["one"], b["scores"], 2),
        "_first": lambda tf, b: metric(tf)(b["sets"], b["scores"], 1),
        "_weights": lambda tf, b: metric(tf)(
            b["sets"], b["scores"], 3, weights=b["vector_weights"]
        ),
        "_padded": lambda tf, b: metric(tf)(b["padded"], b["scores"], 3),
        "_sparse": lambda tf, b: metric(tf)(sparse(tf, b), b["scores"], 3),
        "_scalar": lambda tf, b: metric(tf)(b["sets"], b["scores"], 2, weights=0.5),
    }
    if "average" not in name:
        found["_class"] = lambda tf, b: metric(tf)(b["sets"], b["scores"], 3, class_id=2)
        found["_sparse_class"] = lambda tf, b: metric(tf)(
            sparse(tf, b), b["scores"], 3, 3, b["vector_weights"]
        )
    return {name + key: case for key, case in found.items()}


for _name in ("precision_at_k", "recall_at_k", "average_precision_at_k"):
    CASES.update(_ranked(_name))
CASES["sparse_precision_at_k"] = lambda tf, b: tf.metrics.sparse_precision_at_k(
    b["sets"], b["scores"], 2
)
CASES["sparse_average_precision_at_k"] = lambda tf, b: tf.metrics.sparse_average_precision_at_k(
    b["sets"], b["scores"], 2, name="named"
)


def listed(value):
    """A value as JSON has it; NaN as a string."""
    array = np.asarray(value, np.float64).round(7)
    return [str(x) if np.isnan(x) else float(x) for x in array.reshape(-1)]


def inputs(tf, shapes_known=True):
    """Placeholders for a batch, by key."""
    return {
        key: tf.placeholder(
            tf.as_dtype(value.dtype.name), value.shape if shapes_known else [None] * value.ndim
        )
        for key, value in batches()[0].items()
    }


def computed(tf, metrics, given):
    """Run metrics over all batches: a dict for each of values before, updates, and after."""
    feeds = [{given[key]: batch[key] for key in given} for batch in batches()]
    values, updates = [m[0] for m in metrics], [m[1] for m in metrics]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        before = session.run(values)
        new = [session.run(updates, feed) for feed in feeds]
        after = session.run(values)
    return [
        {
            "before": listed(before[i]),
            "updates": [listed(each[i]) for each in new],
            "after": listed(after[i]),
            "dtype": np.asarray(after[i]).dtype.name,
            "shape": list(np.shape(after[i])),
        }
        for i in range(len(values))
    ]


def variables(tf):
    """What was made: local variables with their shapes, and those of metrics."""
    return {
        "variables": [[v.name, v.shape.as_list()] for v in tf.local_variables()],
        "metrics": [v.name for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)],
    }


def record(tf, case):
    """Run a case alone, and return what is to be compared."""
    given = inputs(tf)
    metric = case(tf, given)
    return dict(computed(tf, [metric], given)[0], **variables(tf))
