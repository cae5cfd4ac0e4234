"""Batch normalization as a layer, with the moving averages that inference uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, shown
from headrace.extend import DType, Shape, Tensor
from headrace.extend.arguments import items, mapping, whole
from headrace_train.layers.arguments import checked_function, initializer
from headrace_train.layers.base import Layer
from headrace_train.layers.choice import choose, known
from headrace_train.layers.input_spec import InputSpec

_ZEROS = hr.zeros_initializer()
_ONES = hr.ones_initializer()


class BatchNormalization(Layer):
    """Normalizes each channel with the moments of the batch, then scales and shifts it.

    In training the moments are those of the batch, and operations that update their moving averages
    are added to the graph's ``GraphKeys.UPDATE_OPS``: run them with each step, as in::

        updates = hr.get_collection(hr.GraphKeys.UPDATE_OPS)
        train = hr.group(optimizer.minimize(loss), *updates)

    Otherwise the moments are the moving averages.

    Attributes:
        gamma: What normalized values are multiplied by, or None.
        beta: What is added to them, or None.
        moving_mean: The moving average of the means.
        moving_variance: That of the variances.

    References:
        S. Ioffe and C. Szegedy, "Batch Normalization: Accelerating Deep Network Training by
        Reducing Internal Covariate Shift", 2015, https://arxiv.org/abs/1502.03167
        S. Ioffe, "Batch Renormalization: Towards Reducing Minibatch Dependence in
        Batch-Normalized Models", 2017, https://arxiv.org/abs/1702.03275
        E. Hoffer, I. Hubara and D. Soudry, "Train longer, generalize better", 2017 (normalization
        of parts of a batch), https://arxiv.org/abs/1705.08741
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: Any = 0.99,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = _ZEROS,
        gamma_initializer: Any = _ONES,
        moving_mean_initializer: Any = _ZEROS,
        moving_variance_initializer: Any = _ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: Any = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say how values are normalized.

        Args:
            axis: The axis of the channels, or a list of axes whose combinations are normalized
                each on its own.
            momentum: How much of the moving averages is kept in an update.
            epsilon: A small number, which keeps from dividing by 0.
            center: Whether ``beta`` is added.
            scale: Whether ``gamma`` is multiplied by.
            beta_initializer: Makes ``beta``.
            gamma_initializer: Makes ``gamma``.
            moving_mean_initializer: Makes the moving average of the means.
            moving_variance_initializer: Makes that of the variances.
            beta_regularizer: A function of ``beta``, whose result is added to the graph's
                regularization losses.
            gamma_regularizer: The same of ``gamma``.
            beta_constraint: What optimizers apply to ``beta`` after each change.
            gamma_constraint: The same for ``gamma``.
            renorm: Whether training corrects the batch's moments towards moving ones.
            renorm_clipping: From "rmin", "rmax" and "dmax" to the bounds of the corrections: of the
                factor, and of the magnitude of the shift.
            renorm_momentum: As ``momentum``, for the moments of ``renorm``.
            fused: False for no ``nn.fused_batch_norm``; otherwise that is used for images with
                channels in axis 1 or 3, where nothing else is asked for that it does not do. It
                estimates the population's variance, which is larger by n / (n - 1), and its epsilon
                is 1.001e-5 at least.
            trainable: Whether optimizers change the variables by default.
            virtual_batch_size: The size of the parts of a batch that are normalized each on its
                own; must divide the size of the batch.
            adjustment: A function of the shape of the input, as a tensor, that returns what
                normalized values are multiplied by and what is added to them in training, before
                ``gamma`` and ``beta``.
            name: The layer's name, and that of its variable scope.
            **kwargs: ``dtype``, that of the variables.

        Raises:
            DTypeError: if ``axis`` is neither an integer nor a list.
            AttributeValueError: if there is no axis, if ``renorm_clipping`` has other keys, or an
                option excludes another.
        """
        super().__init__(trainable=trainable, name=name, **kwargs)
        if not isinstance(axis, int | list):
            raise DTypeError(f"axis must be an integer or a list of them, got {shown(axis)}")
        if not isinstance(renorm_clipping, Mapping | None):
            raise ArgumentTypeError(
                f"renorm_clipping must be a dict of numbers by key, got {shown(renorm_clipping)}"
            )
        clipping = mapping(renorm_clipping, "renorm_clipping")
        if renorm and set(clipping) - {"rmin", "rmax", "dmax"}:
            raise AttributeValueError(
                f"renorm_clipping takes the keys rmin, rmax and dmax, got {sorted(clipping)}"
            )
        axes = [axis] if isinstance(axis, int) else items(axis, "axis")
        if not axes:
            raise AttributeValueError("axis must name an axis, got an empty list")
        self.axis: list[int] = [whole(each, "axis") for each in axes]
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = initializer(beta_initializer)
        self.gamma_initializer = initializer(gamma_initializer)
        self.moving_mean_initializer = initializer(moving_mean_initializer)
        self.moving_variance_initializer = initializer(moving_variance_initializer)
        self.beta_regularizer = checked_function(beta_regularizer, "beta_regularizer")
        self.gamma_regularizer = checked_function(gamma_regularizer, "gamma_regularizer")
        self.beta_constraint = checked_function(beta_constraint, "beta_constraint")
        self.gamma_constraint = checked_function(gamma_constraint, "gamma_constraint")
        self.renorm = renorm
        self.renorm_clipping = clipping
        self.renorm_momentum = renorm_momentum
        self.fused = fused is None or bool(fused)
        self.virtual_batch_size = (
            None if virtual_batch_size is None else whole(virtual_batch_size, "virtual_batch_size")
        )
        self.adjustment = checked_function(adjustment, "adjustment")
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self.moving_stddev: Any = None
        self.renorm_mean: Any = None
        self.renorm_stddev: Any = None

    # -- variables

    def build(self, input_shape: Any) -> None:
        """Make the variables.

        Args:
            input_shape: The shape of the input, of which the rank and the channels are known.

        Raises:
            ShapeError: if they are not.
            AttributeValueError: if the input has no such axes, or options do not fit them.
        """
        shape = Shape(input_shape)
        if not shape.rank:
            raise ShapeError(
                f"layer {self.name!r} needs to know the rank of its input, which must have axes; "
                f"got shape {shape}"
            )
        self.axis = self._checked_axes(shape.rank)
        sizes = {axis: shape[axis] for axis in self.axis}
        if None in sizes.values():
            raise ShapeError(
                f"layer {self.name!r} needs to know the sizes of axes {self.axis} of its input, "
                f"got shape {shape}; use set_shape"
            )
        self._check_virtual_batches()
        self.fused = self.fused and shape.rank == 4 and self._may_fuse()
        self.input_spec = InputSpec(ndim=shape.rank, axes=sizes)
        all_axes = len(sizes) > 1 or self.virtual_batch_size is not None
        place = [sizes.get(axis, 1) for axis in range(shape.rank)]
        if self.virtual_batch_size is not None:
            # Batches get an axis of their parts.
            place.insert(1, 1)
            self.axis = [axis + 1 for axis in self.axis]
        self._make(place if all_axes else list(sizes.values()))
        self.built = True

    def _checked_axes(self, rank: int) -> list[int]:
        found = [axis + rank if axis < 0 else axis for axis in self.axis]
        if not all(0 <= axis < rank for axis in found):
            raise AttributeValueError(
                f"layer {self.name!r}: axis {shown(self.axis)} is out of range for "
                f"{rank} dimensions"
            )
        if len(set(found)) != len(found):
            raise AttributeValueError(f"layer {self.name!r}: axis {self.axis} names one twice")
        return found

    def _check_virtual_batches(self) -> None:
        size = self.virtual_batch_size
        if size is None:
            return
        if size <= 0:
            raise AttributeValueError(f"virtual_batch_size must be positive, got {size}")
        if 0 in self.axis:
            raise AttributeValueError(
                "virtual_batch_size parts the batch, axis 0, which therefore cannot be in axis"
            )
        if self.adjustment is not None:
            raise AttributeValueError("virtual_batch_size and adjustment exclude each other")

    def _may_fuse(self) -> bool:
        plain = not self.renorm and self.virtual_batch_size is None and self.adjustment is None
        return plain and self.axis in ([1], [3])

    @property
    def _kind(self) -> DType:
        """The dtype of the variables; moments of 16-bit floats are kept in float32."""
        if self.dtype is None or self.dtype in (hr.float16, hr.bfloat16):
            return hr.float32
        return self.dtype

    def _make(self, shape: list[Any]) -> None:
        def weight(name: str, start: Any, trainable: bool = False, **options: Any) -> Any:
            return self.add_weight(name, shape, self._kind, start, trainable=trainable, **options)

        if self.scale:
            self.gamma = weight(
                "gamma",
                self.gamma_initializer,
                True,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )
        if self.center:
            self.beta = weight(
                "beta",
                self.beta_initializer,
                True,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
            )
        # Averages stay whole: they are updated, and named in checkpoints, as one variable each.
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        try:
            self._make_averages(weight)
        finally:
            self._scope.set_partitioner(partitioner)

    def _make_averages(self, weight: Callable[..., Any]) -> None:
        self.moving_mean = weight("moving_mean", self.moving_mean_initializer)
        self.moving_variance = weight("moving_variance", self.moving_variance_initializer)
        if self.renorm:

            def deviation(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
                make = self.moving_variance_initializer or _ONES
                return hr.sqrt(make(shape, dtype=dtype))

            self.moving_stddev = weight("moving_stddev", deviation)
            self.renorm_mean = weight("renorm_mean", self.moving_mean_initializer)
            self.renorm_stddev = weight("renorm_stddev", deviation)

    # -- normalizing

    def call(self, inputs: Any, training: Any = False) -> Any:
        """Normalize.

        Args:
            inputs: [...], floating.
            training: Whether with the moments of the batch: a bool, or a scalar bool tensor.

        Returns:
            The shape and dtype of ``inputs``.
        """
        if self.fused:
            return self._fused(inputs, training)
        size = self.virtual_batch_size
        if size is None:
            return self._normalized(inputs, training)
        rest = inputs.shape.as_list()[1:]
        if rest.count(None) > 0:
            raise ShapeError(
                f"layer {self.name!r}: virtual_batch_size needs all sizes but that of the batch, "
                f"got shape {inputs.spec.shape}"
            )
        outputs = self._normalized(hr.reshape(inputs, [size, -1, *rest]), training)
        outputs = hr.reshape(outputs, [-1, *rest])
        outputs.set_shape(inputs.shape)
        return outputs

    def _fused(self, inputs: Tensor, training: Any) -> Tensor:
        count = self.moving_mean.shape.known
        gamma = hr.ones(count, self._kind) if self.gamma is None else self.gamma
        beta = hr.zeros(count, self._kind) if self.beta is None else self.beta
        layout = "NCHW" if self.axis == [1] else "NHWC"

        def of_batch() -> Any:
            return hr.nn.fused_batch_norm(
                inputs, gamma, beta, epsilon=self.epsilon, data_format=layout
            )

        def of_averages() -> Any:
            return hr.nn.fused_batch_norm(
                inputs,
                gamma,
                beta,
                self.moving_mean,
                self.moving_variance,
                self.epsilon,
                layout,
                is_training=False,
            )

        outputs, mean, variance = choose(training, of_batch, of_averages)
        trains = known(training)
        if trains is not False:
            momentum = self.momentum
            if trains is None:
                momentum = choose(
                    training, lambda: hr.constant(self.momentum), lambda: hr.constant(1.0)
                )
            self.add_update(lambda: _moved(self.moving_mean, mean, momentum))
            self.add_update(lambda: _moved(self.moving_variance, variance, momentum))
        made: Tensor = outputs
        return made

    def _normalized(self, inputs: Tensor, training: Any) -> Tensor:
        scale, offset = self._spread(self.gamma, inputs), self._spread(self.beta, inputs)
        mean, variance = self.moving_mean, self.moving_variance
        if known(training) is not False:
            if self.adjustment is not None:
                factor, shift = self.adjustment(hr.shape(inputs))
                factor = choose(training, lambda: factor, lambda: hr.ones_like(factor))
                shift = choose(training, lambda: shift, lambda: hr.zeros_like(shift))
                scale, offset = _after(factor, shift, scale, offset)
            of_batch = self._moments(inputs)
            mean, variance = choose(
                training,
                lambda: of_batch,
                lambda: (self.moving_mean.value(), self.moving_variance.value()),
            )
            new = mean, variance
            if self.virtual_batch_size is not None:
                new = hr.reduce_mean(mean, 1, True), hr.reduce_mean(variance, 1, True)
            if self.renorm:
                factor, shift, new = self._renormalized(*new, training)
                factor = self._spread(hr.stop_gradient(factor), inputs)
                shift = self._spread(hr.stop_gradient(shift), inputs)
                scale, offset = _after(factor, shift, scale, offset)
            self._update(new, training)
        outputs = hr.nn.batch_normalization(
            inputs,
            self._spread(hr.cast(mean, inputs.dtype), inputs),
            self._spread(hr.cast(variance, inputs.dtype), inputs),
            None if offset is None else hr.cast(offset, inputs.dtype),
            None if scale is None else hr.cast(scale, inputs.dtype),
            self.epsilon,
            name="batchnorm",
        )
        outputs.set_shape(inputs.spec.shape)
        return outputs

    def _moments(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        assert inputs.shape.rank is not None
        axes = [axis for axis in range(inputs.shape.rank) if axis not in self.axis]
        if self.virtual_batch_size is not None:
            del axes[1]
        keep = self.virtual_batch_size is not None or len(self.axis) > 1
        return hr.nn.moments(hr.cast(inputs, self._kind), axes, keep_dims=keep)

    def _spread(self, value: Any, inputs: Tensor) -> Any:
        """Return a vector of channels in a shape that broadcasts against the input."""
        assert inputs.shape.rank is not None
        rank = inputs.shape.rank
        if value is None or value.shape.rank == rank or self.axis == [rank - 1]:
            return value
        shape = [1] * rank
        shape[self.axis[0]] = inputs.spec.shape[self.axis[0]]
        return hr.reshape(value, shape)

    def _renormalized(
        self, mean: Tensor, variance: Tensor, training: Any
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Return batch renormalization's factor and shift, and the moments for inference.

        Sections 3 and 4 of Ioffe, 2017.
        """
        deviation = hr.sqrt(variance + self.epsilon)
        usual = hr.maximum(self.renorm_stddev, math.sqrt(self.epsilon))
        factor = deviation / usual
        shift = (mean - self.renorm_mean) / usual
        # What corrects this batch are the averages from before it.
        with hr.control_dependencies([factor, shift]):
            mean, deviation = hr.identity(mean), hr.identity(deviation)
        low, high, most = (self.renorm_clipping.get(key) for key in ("rmin", "rmax", "dmax"))
        factor = factor if low is None else hr.maximum(factor, low)
        factor = factor if high is None else hr.minimum(factor, high)
        if most is not None:
            shift = hr.minimum(hr.maximum(shift, -hr.convert_to_tensor(most, shift.dtype)), most)
        factor = choose(training, lambda: factor, lambda: hr.ones_like(factor))
        shift = choose(training, lambda: shift, lambda: hr.zeros_like(shift))

        def moved(average: Any, value: Tensor) -> Any:
            return choose(
                training,
                lambda: _moved(average, value, self.renorm_momentum),
                lambda: average.value(),
            )

        updates = [moved(self.renorm_mean, mean), moved(self.renorm_stddev, deviation)]
        with hr.control_dependencies(updates):
            return factor, shift, (hr.identity(mean), hr.identity(variance))

    def _update(self, moments: Any, training: Any) -> None:
        mean, variance = moments

        def new_variance() -> Any:
            if not self.renorm:
                return _moved(self.moving_variance, variance, self.momentum)
            # Averages of deviations are closer to what training divides by.
            deviation = _moved(self.moving_stddev, hr.sqrt(variance + self.epsilon), self.momentum)
            square = hr.nn.relu(deviation * deviation - self.epsilon)
            return self.moving_variance.assign(square, name="AssignNewValue")

        self.add_update(
            choose(
                training,
                lambda: _moved(self.moving_mean, mean, self.momentum),
                lambda: self.moving_mean.value(),
            )
        )
        self.add_update(choose(training, new_variance, lambda: self.moving_variance.value()))

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output, which is that of the input.

        Args:
            input_shape: The shape of the input.
        """
        return hr.TensorShape(input_shape)


def _after(factor: Any, shift: Any, scale: Any, offset: Any) -> tuple[Any, Any]:
    """Return the scale and offset of ``(x * factor + shift) * scale + offset``."""
    if scale is not None:
        factor, shift = factor * scale, shift * scale
    return factor, shift if offset is None else shift + offset


def _moved(average: Any, value: Any, momentum: Any) -> Tensor:
    """Move an average towards a value; yields the new average."""
    with hr.name_scope("AssignMovingAvg") as scope, hr.colocate_with(average):
        decay = hr.cast(1.0 - momentum, average.dtype)
        delta = (average - hr.cast(value, average.dtype)) * decay
        moved: Tensor = average.assign_sub(delta, name=scope)
        return moved


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: Any = 0.99,
    epsilon: float = 0.001,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = _ZEROS,
    gamma_initializer: Any = _ONES,
    moving_mean_initializer: Any = _ZEROS,
    moving_variance_initializer: Any = _ONES,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: Any = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Normalize each channel with the moments of the batch, then scale and shift it.

    In training, operations that update the moving averages of the moments are added to the graph's
    ``GraphKeys.UPDATE_OPS``; run them with each step.

    Args:
        inputs: [...], floating.
        axis: As for ``BatchNormalization``, and the following likewise.
        momentum: How much of the moving averages is kept in an update.
        epsilon: A small number, which keeps from dividing by 0.
        center: Whether ``beta`` is added.
        scale: Whether ``gamma`` is multiplied by.
        beta_initializer: Makes ``beta``.
        gamma_initializer: Makes ``gamma``.
        moving_mean_initializer: Makes the moving average of the means.
        moving_variance_initializer: Makes that of the variances.
        beta_regularizer: A function of ``beta``.
        gamma_regularizer: A function of ``gamma``.
        beta_constraint: Applied to ``beta`` after each change.
        gamma_constraint: Applied to ``gamma`` after each change.
        training: Whether the moments are those of the batch: a bool, or a scalar bool tensor;
            otherwise they are the moving averages.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.
        renorm: Whether training corrects the batch's moments towards moving ones.
        renorm_clipping: Bounds of the corrections.
        renorm_momentum: As ``momentum``, for the moments of ``renorm``.
        fused: False for no ``nn.fused_batch_norm``.
        virtual_batch_size: The size of the parts of a batch that are normalized each on its own.
        adjustment: A function of the shape that returns a factor and a shift.

    Returns:
        The shape and dtype of ``inputs``.
    """
    layer = BatchNormalization(
        axis=axis,
        momentum=momentum,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=beta_initializer,
        gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer,
        gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint,
        gamma_constraint=gamma_constraint,
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_momentum=renorm_momentum,
        fused=fused,
        trainable=trainable,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs, training=training)
    return outputs
