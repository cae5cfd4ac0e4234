"""What layers promise beyond TensorFlow's tables: the base class, properties, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def run(*values: Any, feeds: Any = None) -> Any:
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        return session.run(values[0] if len(values) == 1 else list(values), feeds)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


class Scale(hr.layers.Layer):
    """A layer as a program would write it."""

    def build(self, input_shape: hr.Shape) -> None:
        self.factor = self.add_weight("factor", input_shape[-1:], initializer="ones")
        self.count = self.add_variable(
            "count", None, initializer=hr.zeros_initializer(), trainable=False
        )
        super().build(input_shape)

    def call(self, inputs: Any, twice: bool = False) -> Any:
        self.add_update(lambda: self.count.assign_add(1.0))
        self.add_loss(hr.reduce_sum(inputs), inputs=True)
        return inputs * self.factor * (2 if twice else 1)


def test_a_layer_of_a_program_knows_its_variables_losses_and_updates() -> None:
    x = hr.constant(numbers(4, 3))
    layer = Scale(name="scale")
    assert not layer.built
    y = layer(x, twice=True)
    assert layer.built
    assert layer.dtype == hr.float64
    assert [v.name for v in layer.variables] == ["scale/factor:0", "scale/count:0"]
    assert layer.trainable_weights == layer.trainable_variables == [layer.factor]
    assert layer.non_trainable_weights == layer.non_trainable_variables == [layer.count]
    assert layer.weights == [layer.factor, layer.count]
    assert layer.count_params() == 4
    assert hr.get_collection(hr.GraphKeys.UPDATE_OPS) == layer.updates
    assert hr.losses.get_regularization_losses() == layer.losses
    assert layer.input is x
    assert layer.output is y
    assert layer.input_shape == layer.output_shape == [4, 3]
    np.testing.assert_array_equal(run(y), 2 * numbers(4, 3))
    layer(hr.constant(numbers(2, 3)))
    assert layer.get_input_shape_at(1) == layer.get_output_shape_at(1) == [2, 3]
    assert layer.get_input_at(0) is x
    assert layer.get_output_at(0) is y
    assert layer.count_params() == 4
    with pytest.raises(AttributeError, match="several shapes"):
        _ = layer.input_shape


def test_a_layer_that_is_not_trainable_has_no_updates_and_no_trainable_variables() -> None:
    layer = Scale(trainable=False)
    layer(hr.constant(numbers(4, 3)))
    assert layer.updates == []
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 2
    assert hr.trainable_variables() == []
    assert hr.get_collection(hr.GraphKeys.UPDATE_OPS) == []


def test_losses_and_updates_are_told_by_the_inputs_that_they_follow_from() -> None:
    first, second = hr.constant(numbers(4, 3)), hr.constant(numbers(4, 3))
    layer = hr.layers.BatchNormalization(beta_regularizer=hr.layers.l1_regularizer(0.5))
    layer(first, training=True)
    layer(second, training=True)
    assert len(layer.updates) == 4
    assert layer.get_updates_for(first) == layer.updates[:2]
    assert layer.get_updates_for([second]) == layer.updates[2:]
    assert layer.get_updates_for(None) == []
    assert layer.get_losses_for(None) == layer.losses
    assert layer.get_losses_for(first) == []
    scale = Scale()
    scale(first)
    assert scale.get_losses_for(first) == scale.losses
    assert scale.get_losses_for(second) == []
    assert scale.get_updates_for(None) == scale.updates


def test_a_layer_takes_and_returns_structures_of_tensors() -> None:
    class Both(hr.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return {"sum": inputs[0] + inputs[1], "first": inputs[0]}

    layer = Both()
    layer.input_spec = [hr.layers.InputSpec(ndim=1), hr.layers.InputSpec(min_ndim=1)]
    made = layer([hr.constant([1.0, 2.0]), np.float32([3, 4])])
    assert run(made)["sum"].tolist() == [4.0, 6.0]
    assert layer.input_shape == [[2], [2]]
    with pytest.raises(hr.errors.ShapeError, match="takes 2 inputs, got 1"):
        layer(hr.constant([1.0]))
    with pytest.raises(hr.errors.ShapeError, match="does not take input 0: expected 1 dim"):
        layer([hr.constant([[1.0]]), hr.constant([1.0])])


def test_training_reaches_layers_inside_of_layers() -> None:
    class Block(hr.layers.Layer):
        def call(self, inputs: Any, training: bool = False) -> Any:
            return hr.layers.BatchNormalization(name="inner")(inputs)

    x = hr.constant(numbers(8, 2) * 5 + 1)
    normal = run(Block()(x, training=True))
    np.testing.assert_allclose(normal.mean(0), 0, atol=1e-6)
    plain = run(Block()(x))
    np.testing.assert_allclose(plain, numbers(8, 2) * 5 + 1, rtol=1e-3)


def test_call_gets_the_variable_scope_where_it_asks_for_it() -> None:
    class Scoped(hr.layers.Layer):
        def call(self, inputs: Any, scope: Any = None) -> Any:
            return inputs + hr.get_variable("extra", [], initializer=hr.ones_initializer())

    layer = Scoped(name="scoped")
    with hr.variable_scope("around"):
        first = layer(hr.constant(1.0))
    second = layer(hr.constant(1.0))
    assert [v.name for v in hr.global_variables()] == ["around/scoped/extra:0"]
    assert layer.scope_name == "around/scoped"
    assert run(first, second) == [2.0, 2.0]


def test_values_of_variables_are_read_and_set_in_a_session() -> None:
    layer = hr.layers.Dense(2)
    layer(hr.constant(numbers(4, 3)))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        layer.set_weights([numbers(3, 2), [1.0, 2.0]])
        kernel, bias = layer.get_weights()
    np.testing.assert_array_equal(kernel, numbers(3, 2))
    assert bias.tolist() == [1.0, 2.0]
    with pytest.raises(hr.errors.GraphError, match="with session"):
        layer.get_weights()


def test_a_layer_made_in_a_loop_makes_its_variables_outside() -> None:
    layer = hr.layers.Dense(3, use_bias=False, kernel_initializer="ones")
    found = hr.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, layer(x)), (0, hr.ones([1, 3])))
    assert [v.name for v in hr.global_variables()] == ["dense/kernel:0"]
    assert run(found[1]).tolist() == [[9.0, 9.0, 9.0]]


FIRST = [
    pytest.param(lambda x, f: hr.layers.conv1d(x, 2, 3, 2, "same", f), 1, id="conv1d"),
    pytest.param(
        lambda x, f: hr.layers.Conv1D(2, 3, padding="causal", data_format=f)(x), 1, id="causal"
    ),
    pytest.param(lambda x, f: hr.layers.conv2d(x, 2, 3, 1, "same", f, (2, 1)), 2, id="conv2d"),
    pytest.param(lambda x, f: hr.layers.conv3d(x, 2, 2, 1, "valid", f), 3, id="conv3d"),
    pytest.param(
        lambda x, f: hr.layers.conv2d_transpose(x, 2, 3, 2, "same", f), 2, id="conv2d_transpose"
    ),
    pytest.param(
        lambda x, f: hr.layers.conv3d_transpose(x, 2, 2, 2, "valid", f), 3, id="conv3d_transpose"
    ),
    pytest.param(
        lambda x, f: hr.layers.separable_conv1d(x, 2, 3, 1, "same", f), 1, id="separable_conv1d"
    ),
    pytest.param(
        lambda x, f: hr.layers.separable_conv2d(x, 2, 3, 2, "same", f), 2, id="separable_conv2d"
    ),
    *(
        pytest.param(
            lambda x, f, name=name, n=n: getattr(hr.layers, f"{name}_pooling{n}d")(
                x, 2, 2, "same", f
            ),
            n,
            id=f"{name}_pooling{n}d",
        )
        for name in ("max", "average")
        for n in (1, 2, 3)
    ),
    pytest.param(
        lambda x, f: hr.layers.batch_normalization(
            x, axis=1 if f == "channels_first" else -1, training=True
        ),
        2,
        id="batch_normalization",
    ),
]


@pytest.mark.parametrize(("build", "count"), FIRST)
def test_channels_first_computes_the_same_in_another_layout(build: Any, count: int) -> None:
    x = numbers(2, *(6, 5, 4)[:count], 3)
    first, last = [0, count + 1, *range(1, count + 1)], [0, *range(2, count + 2), 1]
    with hr.variable_scope("layer"):
        expected = build(hr.constant(x), "channels_last")
    with hr.variable_scope("layer", reuse=True):
        found = hr.transpose(build(hr.constant(x.transpose(first)), "channels_first"), last)
    assert found.shape == expected.shape
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        ours, theirs = session.run([found, expected])
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("build", "count"), FIRST)
def test_gradients_reach_inputs_and_all_variables(build: Any, count: int) -> None:
    """Along one random direction, against central differences in float64."""
    x = hr.placeholder(hr.float64, [2, *(6, 5, 4)[:count], 3])
    y = build(x, "channels_last")
    weights = hr.constant(numbers(*y.shape.known, seed=1))
    loss = hr.reduce_sum(y * weights)
    variables = hr.trainable_variables()
    gradients = hr.gradients(loss, [x, *variables])
    assert None not in gradients
    rng = np.random.default_rng(2)
    value = numbers(*x.shape.known, seed=3)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        starts = session.run(variables)
        for variable, start in zip(variables, starts, strict=True):
            variable.load(start + rng.normal(size=start.shape), session)
        starts = [value, *session.run(variables)]
        ways = [rng.normal(size=start.shape) for start in starts]
        found = session.run(gradients, {x: value})
        slope = sum(float((g * way).sum()) for g, way in zip(found, ways, strict=True))
        step, sides = 1e-6, []
        for sign in (1, -1):
            moved = [s + sign * step * way for s, way in zip(starts, ways, strict=True)]
            for variable, to in zip(variables, moved[1:], strict=True):
                variable.load(to, session)
            sides.append(session.run(loss, {x: moved[0]}))
    assert slope == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-5, abs=1e-6)


def test_dropout_drops_a_share_and_keeps_the_mean() -> None:
    x = hr.ones([200, 300])
    dropped, kept = run(hr.layers.dropout(x, 0.25, seed=3, training=True), hr.layers.dropout(x))
    assert set(np.unique(dropped)) == {0.0, np.float32(1 / 0.75)}
    assert (dropped == 0).mean() == pytest.approx(0.25, abs=0.01)
    assert (kept == 1).all()


def test_dropout_takes_its_noise_from_the_shape_asked_for() -> None:
    training = hr.placeholder(hr.bool, [])
    x = hr.placeholder(hr.float32, [None, 4, 3])
    y = hr.layers.dropout(x, 0.5, noise_shape=[None, 1, 3], training=training)
    with hr.Session() as session:
        ones = np.ones([50, 4, 3], np.float32)
        dropped = session.run(y, {x: ones, training: True})
        kept = session.run(y, {x: ones, training: False})
    assert (dropped == dropped[:, :1]).all()
    assert 0.3 < (dropped == 0).mean() < 0.7
    assert (kept == 1).all()


def test_moving_averages_move_only_where_a_step_trains() -> None:
    training = hr.placeholder(hr.bool, [])
    for shape in ((8, 3), (2, 4, 4, 3)):
        x = hr.constant(numbers(*shape) * 2 + 3, hr.float32)
        hr.layers.batch_normalization(x, training=training, momentum=0.5)
    updates = hr.get_collection(hr.GraphKeys.UPDATE_OPS)
    averages = [v for v in hr.global_variables() if "moving_mean" in v.name]
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(updates, {training: False})
        assert all((value == 0).all() for value in session.run(averages))
        session.run(updates, {training: True})
        for value, shape in zip(session.run(averages), ((8, 3), (2, 4, 4, 3)), strict=True):
            mean = (numbers(*shape) * 2 + 3).mean(tuple(range(len(shape) - 1)))
            np.testing.assert_allclose(value, mean / 2, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_batch_normalization_keeps_the_moments_of_16_bit_floats_in_float32(dtype: str) -> None:
    x = hr.cast(hr.constant(numbers(8, 3)), dtype)
    layer = hr.layers.BatchNormalization()
    y = layer(x, training=True)
    assert y.dtype == hr.as_dtype(dtype)
    assert {v.dtype for v in layer.variables} == {hr.float32}
    assert abs(run(hr.cast(y, hr.float32)).mean()) < 0.02


def test_unknown_sizes_stay_unknown_and_are_computed() -> None:
    x = hr.placeholder(hr.float32, [None, None, None, 3])
    y = hr.layers.conv2d_transpose(hr.layers.conv2d(x, 4, 3, padding="same"), 2, 3, 2)
    assert y.shape.as_list() == [None, None, None, 2]
    z = hr.layers.flatten(y)
    assert z.shape.as_list() == [None, None]
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        feeds = {x: numbers(2, 4, 5, 3).astype(np.float32)}
        assert session.run(y, feeds).shape == (2, 9, 11, 2)
        assert session.run(z, feeds).shape == (2, 198)


SHAPES = [
    (lambda: hr.layers.Dense(4), [None, 5, 3], [None, 5, 4]),
    (lambda: hr.layers.Conv2D(4, 3, (2, 1)), [2, 7, None, 3], [2, 3, None, 4]),
    (lambda: hr.layers.Conv1D(4, 3, padding="causal"), [2, 7, 3], [2, 7, 4]),
    (
        lambda: hr.layers.Conv2D(4, 3, data_format="channels_first", dilation_rate=2),
        [2, 3, 7, 8],
        [2, 4, 3, 4],
    ),
    (lambda: hr.layers.Conv3DTranspose(4, 3, 2), [2, 3, 3, 3, 2], [2, 7, 7, 7, 4]),
    (lambda: hr.layers.MaxPooling2D(3, 2, "same"), [2, 7, 7, 3], [2, 4, 4, 3]),
    (lambda: hr.layers.AveragePooling1D(3, 2), [2, 7, 3], [2, 3, 3]),
    (lambda: hr.layers.Flatten(), [None, 4, 5], [None, 20]),
    (lambda: hr.layers.Dropout(), [None, 4], [None, 4]),
    (lambda: hr.layers.BatchNormalization(), [None, 4], [None, 4]),
]


@pytest.mark.parametrize(("make", "given", "expected"), SHAPES, ids=range(len(SHAPES)))
def test_the_shape_of_the_output_is_known_before(make: Any, given: Any, expected: Any) -> None:
    found = make().compute_output_shape(given)
    assert found == expected
    assert isinstance(found, hr.TensorShape)
    assert found[1].value == expected[1]
    assert make()(hr.placeholder(hr.float32, given)).shape == expected


def test_scopes_give_initializers_regularizers_and_custom_getters() -> None:
    def frozen(getter: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs["trainable"] = False
        return getter(*args, **kwargs)

    with hr.variable_scope(
        "s", initializer=hr.ones_initializer(), regularizer=hr.layers.l2_regularizer(1.0)
    ):
        first = hr.layers.Dense(2)
        y = first(hr.constant([[1.0, 2.0]]))
    with hr.variable_scope("t", custom_getter=frozen):
        second = hr.layers.Dense(2)
        second(y)
    assert len(hr.losses.get_regularization_losses()) == 2
    assert run(y).tolist() == [[3.0, 3.0]]
    assert run(hr.losses.get_regularization_loss()) == 2.0
    assert second.trainable_weights == []
    assert len(second.non_trainable_weights) == 2


def test_constraints_are_kept_for_optimizers() -> None:
    layer = hr.layers.Dense(
        1,
        kernel_initializer="zeros",
        kernel_constraint=lambda w: hr.clip_by_value(w, -0.1, 0.1),
    )
    loss = hr.reduce_sum(layer(hr.constant([[1.0, 2.0]])))
    train = hr.train.GradientDescentOptimizer(1.0).minimize(loss)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(layer.kernel), [[-0.1], [-0.1]])


def test_dense_takes_sparse_rows() -> None:
    rows = hr.SparseTensor([[0, 1], [2, 0]], [2.0, 3.0], [3, 2])
    y = hr.layers.dense(rows, 2, kernel_initializer=hr.constant_initializer([[1, 2], [3, 4]]))
    assert run(y).tolist() == [[6.0, 8.0], [0.0, 0.0], [3.0, 6.0]]


REGULARIZERS = [
    (lambda: hr.layers.l1_regularizer(0.5), 0.5 * 6.0),
    (lambda: hr.layers.l2_regularizer(0.5), 0.5 * 14.0 / 2),
    (lambda: hr.layers.l1_l2_regularizer(0.5, 0.25), 3.0 + 0.25 * 7),
    (lambda: hr.layers.l1_l2_regularizer(0.0, 0.25), 0.25 * 7),
    (lambda: hr.layers.l1_l2_regularizer(0.5, 0.0), 3.0),
    (lambda: hr.layers.l2_regularizer(hr.constant(0.5)), 3.5),
]


@pytest.mark.parametrize(("make", "expected"), REGULARIZERS, ids=range(len(REGULARIZERS)))
def test_regularizers(make: Any, expected: float) -> None:
    weights = hr.constant([1.0, -2.0, 3.0])
    assert run(make()(weights)) == expected


def test_a_regularizer_of_scale_zero_adds_nothing() -> None:
    assert hr.layers.l1_regularizer(0.0)(hr.constant([1.0])) is None
    hr.layers.dense(hr.ones([1, 2]), 2, kernel_regularizer=hr.layers.l2_regularizer(0.0))
    assert hr.losses.get_regularization_losses() == []


def test_results_have_the_names_of_tensorflow() -> None:
    def line() -> Any:
        return hr.placeholder(hr.float32, [2, 8, 3])

    image, volume = hr.placeholder(hr.float32, [2, 8, 8, 3]), hr.ones([2, 8, 8, 8, 3])
    with hr.variable_scope("a"):
        found = [
            hr.layers.max_pooling1d(line(), 2, 2),
            hr.layers.average_pooling1d(line(), 2, 2, name="pool"),
            hr.layers.separable_conv1d(line(), 4, 3),
            hr.layers.separable_conv1d(line(), 4, 3, activation=hr.nn.relu),
            hr.layers.conv1d(line(), 4, 3, use_bias=False),
            hr.layers.conv2d(image, 4, 3, use_bias=False),
            hr.layers.conv3d(volume, 4, 3, use_bias=False),
        ]
    assert [y.op.name for y in found] == [
        "a/max_pooling1d/Squeeze",
        "a/pool/Squeeze",
        "a/separable_conv1d/Squeeze",
        "a/separable_conv1d_1/Relu",
        "a/conv1d/conv1d/Squeeze",
        "a/conv2d/Conv2D",
        "a/conv3d/Conv3D",
    ]
