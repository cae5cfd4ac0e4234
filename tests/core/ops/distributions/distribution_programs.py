"""Programs of distributions as one table, for TensorFlow 1.15 and for Headrace.

Each is an expression of ``tf``, the library, ``d``, its distributions, ``np``, and the functions
here; a tensor or a list of tensors is its result.
"""

import numpy as np  # noqa: F401 - programs name it

# Distributions, by name: how they are made, and values to look at.
MADE = {
    "normal": ("d.Normal([0., 1.5], [[1.], [0.3]])", "[[-2., 0.5], [0., 4.]]"),
    "normal64": ("d.Normal(np.float64(1), np.array([0.5, 2.]))", "np.array([-60., 60.])"),
    "far": ("d.Normal(0., 1.)", "[-50., -12., -3., 0., 3., 6., 12.]"),
    "laplace": ("d.Laplace([0., 1.5], [1., 0.3])", "[[-9., 0.5], [0., 14.]]"),
    "uniform": ("d.Uniform([0., 1.], 3.)", "[[-1., 1.], [2.9, 3.], [3.5, np.nan]]"),
    "unit": ("d.Uniform()", "[0.25, 0.75]"),
    "gamma": ("d.Gamma([0.5, 1., 4.], [[1.], [3.]])", "[0.1, 1., 5.]"),
    "exponential": ("d.Exponential([0.5, 3.])", "[[0.1, 1.], [4., 20.]]"),
    "student": ("d.StudentT([0.7, 1.5, 2.5, 9.], 0.5, 2.)", "[-4., 0.5, 1., 30.]"),
    "beta": ("d.Beta([0.5, 1., 3.], [2., 1., 3.])", "[0.1, 0.5, 0.9]"),
    "bernoulli": ("d.Bernoulli(logits=[-2., 0., 0.5])", "[0, 1, 1]"),
    "chance": ("d.Bernoulli(probs=[0.2, 0.9])", "[[0, 1], [1, 0]]"),
    "categorical": ("d.Categorical(logits=[[0., 1., 2.], [3., -1., 0.]])", "[2, 0]"),
    "shares": ("d.Categorical(probs=[0.2, 0.3, 0.5])", "[[0, 1], [2, 2]]"),
    "dirichlet": ("d.Dirichlet([[1.5, 2., 3.], [4., 1.2, 6.]])", "[[0.2, 0.3, 0.5]] * 2"),
    "multinomial": ("d.Multinomial([4., 5.], probs=[0.2, 0.3, 0.5])", "[[1., 1, 2], [2, 3, 0]]"),
    "counts": ("d.Multinomial(3., logits=[[0., 1.], [2., -1.]])", "[[1., 2.], [3., 0.]]"),
    "mixed": (
        "d.DirichletMultinomial(5., [[1., 2., 3.], [2., 2., 2.]])",
        "[[0., 2, 3], [5, 0, 0]]",
    ),
}

# What to ask of each; not all know all.
STATISTICS = ("mean", "variance", "stddev", "mode", "entropy", "batch_shape_tensor",
              "event_shape_tensor", "is_scalar_event", "is_scalar_batch")  # fmt: skip
OF_VALUES = ("log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival_function")
_VECTORS = ("bernoulli", "chance", "dirichlet", "multinomial", "counts", "mixed")
_WITHOUT = {
    ("multinomial", "mode"), ("counts", "mode"), ("mixed", "mode"), ("unit", "mode"),
    ("uniform", "mode"), ("multinomial", "entropy"), ("counts", "entropy"), ("mixed", "entropy"),
    # TensorFlow cannot tell the modes of a batch.
    ("dirichlet", "mode"),
    *((name, what) for name in ("categorical", "shares") for what in STATISTICS[:3]),
    *((name, what) for name in _VECTORS for what in OF_VALUES[2:]),
}  # fmt: skip
# Of NaN TensorFlow's cdf is 1 or 0, by the order of its comparisons.
_VALUES_ALONE = {("uniform", what): "[[-1., 1.], [2.9, 3.], [3.5, 0.]]" for what in OF_VALUES[2:]}


def _programs():
    for name, (made, values) in MADE.items():
        for what in STATISTICS:
            if (name, what) not in _WITHOUT:
                yield f"{made}.{what}()"
        for what in OF_VALUES:
            if (name, what) not in _WITHOUT:
                given = _VALUES_ALONE.get((name, what), values)
                yield f"{made}.{what}({given})"
    for name in ("dirichlet", "multinomial", "counts", "mixed"):
        yield MADE[name][0] + ".covariance()"


def slope(tf, function, *values):
    """Return gradients of the sum of results, with respect to values."""
    tensors = [tf.constant(value) for value in values]
    return tf.gradients(tf.reduce_sum(function(*tensors)), tensors)


PROGRAMS = [
    *_programs(),
    "d.Normal([0., 1.], 2.).quantile([0.01, 0.9])",
    "d.Normal([0., 1.], 2.).kl_divergence(d.Normal(0.5, [1., 3.]))",
    "d.Normal([0., 1.], 2.).cross_entropy(d.Normal(0.5, [1., 3.]))",
    "d.kl_divergence(d.Gamma([1., 2.], 3.), d.Gamma(2., 0.5))",
    "d.kl_divergence(d.Exponential([1., 2.]), d.Gamma(2., 0.5))",
    "d.kl_divergence(d.Beta([1., 2.], 3.), d.Beta(2., 0.5))",
    "d.kl_divergence(d.Bernoulli(logits=[1., -2.]), d.Bernoulli(probs=0.5))",
    "d.kl_divergence(d.Categorical(logits=[1., -2., 0.]), d.Categorical(probs=[0.5, 0.2, 0.3]))",
    "d.kl_divergence(d.Dirichlet([1., 2., 3.]), d.Dirichlet([2., 2., 0.5]))",
    "d.Categorical(logits=[1., -2., 0.]).cross_entropy(d.Categorical(probs=[0.5, 0.2, 0.3]))",
    "d.Normal([0., 1.], 2.).copy(scale=3.).stddev()",
    "d.Categorical(logits=[[1., 2.]]).event_size",
    "d.Dirichlet([1.5, 2., 3.]).mode()",
    "d.Bernoulli(logits=[1., -2.]).probs",
    "d.Bernoulli(probs=[0.3]).logits",
    "d.Multinomial(2., logits=[1., -2.]).probs",
    "d.Beta(1., [2., 3.]).total_concentration",
    "d.Uniform(1., 3.).range()",
    "list(d.Normal.param_shapes([2, 3]).values())",
    "d.Bernoulli.param_shapes([2])['logits']",
    "slope(tf, lambda m, s: d.Normal(m, s).log_prob([1., 2.]), [0., 1.], [2., 3.])",
    "slope(tf, lambda x: d.Normal(0., 1.).log_cdf(x), [-40., -1., 0., 7.])",
    "slope(tf, lambda x: d.Laplace(0., 1.).log_cdf(x), [-40., -1., 3., 17.])",
    "slope(tf, lambda a, b: d.Beta(a, b).log_prob([0.2, 0.7]), [0.5, 2.], [2., 3.])",
    "slope(tf, lambda a, b: d.Gamma(a, b).entropy(), [0.5, 2.], [2., 3.])",
    "slope(tf, lambda f, s: d.StudentT(f, 0., s).log_prob([1., 2.]), [3., 4.], [2., 3.])",
    "slope(tf, lambda p: d.Categorical(logits=p).entropy(), [0.5, 2., 0.])",
    "slope(tf, lambda c: d.Dirichlet(c).log_prob([0.2, 0.3, 0.5]), [1., 2., 3.])",
    "d.Normal(0., [1., 2.]).sample([4, 3])[..., 0] * 0.",
    "tf.shape(d.Categorical(logits=[[1., 2.]]).sample([2, 2], seed=1))",
    "tf.shape(d.Multinomial([4., 5.], logits=[1., 2.]).sample(3, seed=1))",
    "tf.reduce_sum(d.Multinomial([4., 5.], logits=[1., 2.]).sample(3, seed=1), -1)",
    "tf.reduce_sum(d.DirichletMultinomial(6., [[1., 2.], [3., 4.]]).sample(3, seed=1), -1)",
    "tf.shape(d.Beta([[1.], [2.]], [1., 2., 3.]).sample())",
]

REFUSED = [
    "d.Normal(0., tf.constant(-1.), validate_args=True).mean()",
    "d.Normal(0., np.float64(1.))",
    "d.Normal(1, 2)",
    "d.Laplace(0., [1., -1.], validate_args=True).mean()",
    "d.Uniform(3., 1., validate_args=True).mean()",
    "d.Gamma(-1., 1., validate_args=True).mean()",
    "d.Gamma(2., 1., validate_args=True).prob(-1.)",
    "d.Gamma(0.5, 1., allow_nan_stats=False).mode()",
    "d.StudentT(1., 0., 1., allow_nan_stats=False).mean()",
    "d.StudentT(1., 0., 1., allow_nan_stats=False).variance()",
    "d.StudentT(-1., 0., 1., validate_args=True).mode()",
    "d.Beta(-1., 1., validate_args=True).mean()",
    "d.Beta(1., 1., validate_args=True).prob(1.5)",
    "d.Beta(1., 3., allow_nan_stats=False).mode()",
    "d.Bernoulli()",
    "d.Bernoulli(logits=[0.], probs=[0.5])",
    "d.Bernoulli(probs=[1])",
    "d.Bernoulli(probs=[1.5], validate_args=True).mean()",
    "d.Bernoulli(probs=[0.5], validate_args=True).prob([0.5])",
    "d.Bernoulli(probs=[0.5], validate_args=True).prob([-1])",
    "d.Categorical()",
    "d.Categorical(probs=0.5)",
    "d.Categorical(probs=[0.5, 0.2], validate_args=True).entropy()",
    "d.Categorical(logits=[0.5], validate_args=True).entropy()",
    "d.Categorical(logits=[0.5, 1.], validate_args=True).prob(-1)",
    "d.Categorical(logits=[0.5, 1.]).prob('1')",
    "d.Dirichlet([1., -1.], validate_args=True).mean()",
    "d.Dirichlet([1.], validate_args=True).mean()",
    "d.Dirichlet([1., 3.], validate_args=True).prob([0.5, 0.6])",
    "d.Dirichlet([1., 3.], allow_nan_stats=False).mode()",
    "d.Multinomial(2., probs=[0.5, 0.5], validate_args=True).prob([1., 2.])",
    "d.Multinomial(2.5, probs=[0.5, 0.5], validate_args=True).mean()",
    "d.Multinomial(2., probs=[0.5, 0.5], validate_args=True).prob([0.5, 1.5])",
    "d.DirichletMultinomial(2., [1., 0.], validate_args=True).mean()",
    "d.DirichletMultinomial(2., [1., 1.], validate_args=True).prob([1., 2.])",
    "d.Uniform().mode()",
    "d.Bernoulli(0.).cdf(0)",
    "d.Multinomial(2., [1., 1.]).entropy()",
    "d.kl_divergence(d.Uniform(), d.Normal(0., 1.))",
    "d.Normal(0., 1.).sample([[1]])",
    "d.RegisterKL(d.Normal, d.Normal)(max)",
    "d.RegisterKL(d.Normal, d.Uniform)(3)",
    "d.Categorical.param_shapes([2])",
]
