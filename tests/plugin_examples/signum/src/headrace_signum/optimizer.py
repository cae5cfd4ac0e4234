"""An optimizer: the sign of a moving average of gradients."""

import headrace as hr


class SignumOptimizer(hr.train.ElementwiseOptimizer):
    """Steps of one size, in the direction in which gradients have gone lately.

    With the slot ``average``, which starts at zero::

        average = beta * average + (1 - beta) * gradient
        variable -= learning_rate * sign(average)

    References:
        J. Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems", ICML 2018,
        https://proceedings.mlr.press/v80/bernstein18a.html
    """

    # Averages fade, and elements move by them, where the gradient is zero, too: row-sparse
    # gradients are those of all rows. Without this line other rows would stay as they are.
    _idle_rows_move = True

    def __init__(self, learning_rate=0.001, beta=0.9, use_locking=False, name="Signum"):
        """Set the hyperparameters: numbers, scalar tensors, or functions that return one."""
        given = {"learning_rate": learning_rate, "beta": beta}
        super().__init__(use_locking, name, given)

    # Variables of the optimizer's own, one for each that it changes: saved in checkpoints, placed
    # with their variable, initialized with all others.
    def _create_slots(self, var_list):
        for variable in var_list:
            self._zeros_slot(variable, "average", self._name)

    # One update, in ordinary ops. It is compiled into one pass over variable, slot and gradient.
    def _step(self, grad, old):
        beta = self._hyperparameter("beta", grad.dtype)
        rate = self._hyperparameter("learning_rate", grad.dtype)
        average = old["average"] * beta + grad * (1.0 - beta)
        return hr.train.Step(change=rate * hr.sign(average), slots={"average": average})
