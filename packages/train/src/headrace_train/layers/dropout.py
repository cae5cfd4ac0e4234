"""Dropout as a layer."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, told
from headrace.extend import Tensor
from headrace_train.layers.base import Layer
from headrace_train.layers.choice import choose


class Dropout(Layer):
    """Drops elements at random in training, and scales the others by ``1 / (1 - rate)``.

    References:
        N. Srivastava and others, "Dropout: A Simple Way to Prevent Neural Networks from
        Overfitting", JMLR 2014, https://jmlr.org/papers/v15/srivastava14a.html
    """

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say how much is dropped.

        Args:
            rate: The probability with which an element is dropped, a number in [0, 1) or a scalar
                tensor.
            noise_shape: The shape of what is drawn, which broadcasts against the input; None in it
                stands for the size of the input.
            seed: Seeds the draws, together with the graph's seed.
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if ``rate`` is out of range.
        """
        super().__init__(name=name, **kwargs)
        if isinstance(rate, int | float) and not 0 <= rate < 1:
            raise AttributeValueError(f"rate must be in [0, 1), got {told(rate)}")
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Any, training: Any = False) -> Any:
        """Drop elements where ``training`` is true.

        Args:
            inputs: [...], floating.
            training: A bool, or a scalar bool tensor.

        Returns:
            The shape and dtype of ``inputs``.
        """

        def dropped() -> Tensor:
            return hr.nn.dropout(
                inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate
            )

        return choose(training, dropped, lambda: hr.identity(inputs))

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output, which is that of the input.

        Args:
            input_shape: The shape of the input.
        """
        return hr.TensorShape(input_shape)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Drop elements at random in training, and scale the others by ``1 / (1 - rate)``.

    Args:
        inputs: [...], floating.
        rate: As for ``Dropout``, and the following likewise.
        noise_shape: The shape of what is drawn.
        seed: Seeds the draws.
        training: Whether elements are dropped: a bool, or a scalar bool tensor.
        name: The name of the layer.

    Returns:
        The shape and dtype of ``inputs``.
    """
    outputs: Tensor = Dropout(rate, noise_shape, seed, name)(inputs, training=training)
    return outputs
