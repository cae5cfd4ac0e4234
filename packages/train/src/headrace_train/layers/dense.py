"""Fully connected layers."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.extend import Shape, Tensor
from headrace_train.layers.arguments import activation_function, checked_function, initializer
from headrace_train.layers.base import Layer
from headrace_train.layers.input_spec import InputSpec

_ZEROS = hr.zeros_initializer()


class Dense(Layer):
    """A fully connected layer: ``activation(inputs @ kernel + bias)``.

    Of inputs of more than two dimensions, the last one is multiplied.

    Attributes:
        kernel: [inputs, units], made by the first call.
        bias: [units], or None.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say what the layer computes.

        Args:
            units: The size of the last axis of the output.
            activation: A function of the output, or its name in ``headrace.nn``; none if None.
            use_bias: Whether a vector is added.
            kernel_initializer: Makes the matrix; that of the variable scope if None, else uniform
                (Glorot).
            bias_initializer: Makes the vector.
            kernel_regularizer: A function of the matrix, whose result is added to the graph's
                regularization losses.
            bias_regularizer: The same of the vector.
            activity_regularizer: The same of the output, divided by the size of its first axis.
            kernel_constraint: What optimizers apply to the matrix after each change.
            bias_constraint: The same for the vector.
            trainable: Whether optimizers change the variables by default.
            name: The layer's name, and that of its variable scope.
            **kwargs: ``dtype``, that of the variables.

        Raises:
            AttributeValueError: if ``units`` is not positive, or a name stands for nothing.
        """
        super().__init__(
            trainable=trainable,
            name=name,
            activity_regularizer=checked_function(activity_regularizer, "activity_regularizer"),
            **kwargs,
        )
        try:
            self.units = int(units)
        except (TypeError, ValueError, OverflowError):
            raise AttributeValueError(f"units must be an integer, got {shown(units)}") from None
        if self.units < 0:
            raise AttributeValueError(f"units must be at least 0, got {told(units)}")
        self.activation = activation_function(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializer(kernel_initializer)
        self.bias_initializer = initializer(bias_initializer)
        self.kernel_regularizer = checked_function(kernel_regularizer, "kernel_regularizer")
        self.bias_regularizer = checked_function(bias_regularizer, "bias_regularizer")
        self.kernel_constraint = checked_function(kernel_constraint, "kernel_constraint")
        self.bias_constraint = checked_function(bias_constraint, "bias_constraint")
        self.kernel: Any = None
        self.bias: Any = None
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Make the variables.

        Args:
            input_shape: The shape of the input, of which the last dimension is known.

        Raises:
            ShapeError: if it is not.
            DTypeError: if the layer's dtype is neither floating nor complex.
        """
        kind = self.dtype or hr.float32
        if not (kind.is_floating or kind.is_complex):
            raise DTypeError(
                f"a Dense layer computes with floating or complex numbers, got {kind}; hr.cast the "
                "input"
            )
        last = Shape(input_shape)[-1]
        if last is None:
            raise ShapeError(
                f"a Dense layer needs to know the last dimension of its input, got shape "
                f"{Shape(input_shape)}; use set_shape"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: last})
        self.kernel = self.add_weight(
            "kernel",
            [last, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Multiply, add the bias, apply the activation.

        Args:
            inputs: [..., inputs], a tensor or a ``SparseTensor`` of two dimensions.

        Returns:
            [..., units].
        """
        if isinstance(inputs, hr.SparseTensor):
            outputs = hr.sparse_tensor_dense_matmul(inputs, self.kernel)
        elif (rank := inputs.shape.rank) > 2:
            outputs = hr.tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape([*inputs.shape[:-1], self.units])
        else:
            outputs = hr.matmul(hr.cast(inputs, self.kernel.dtype), self.kernel, name="MatMul")
        if self.bias is not None:
            outputs = hr.nn.bias_add(outputs, self.bias, name="BiasAdd")
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output.

        Args:
            input_shape: The shape of the input.

        Raises:
            ShapeError: if it has less than 2 dimensions, or the last one is not known.
        """
        shape = Shape(input_shape).with_rank_at_least(2)
        if shape[-1] is None:
            raise ShapeError(f"the last dimension of the input must be known, got shape {shape}")
        return hr.TensorShape([*shape[:-1], self.units])


def dense(
    inputs: Any,
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Apply a fully connected layer: ``activation(inputs @ kernel + bias)``.

    Args:
        inputs: [..., inputs].
        units: As for ``Dense``, and the following likewise.
        activation: A function of the output.
        use_bias: Whether a vector is added.
        kernel_initializer: Makes the matrix.
        bias_initializer: Makes the vector.
        kernel_regularizer: A function of the matrix.
        bias_regularizer: A function of the vector.
        activity_regularizer: A function of the output.
        kernel_constraint: Applied to the matrix after each change.
        bias_constraint: Applied to the vector after each change.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.

    Returns:
        [..., units].
    """
    layer = Dense(
        units,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs)
    return outputs
