"""Names, arguments, order and defaults of optimizers and schedules are TensorFlow 1.15's."""

from __future__ import annotations

import inspect

import pytest

import headrace as hr

# As inspect prints signatures there, without self; those of contrib.opt included. Ours take a
# memory_budget besides, by name only.
SIGNATURES = """
Optimizer(use_locking, name)
GradientDescentOptimizer(learning_rate, use_locking=False, name='GradientDescent')
MomentumOptimizer(learning_rate, momentum, use_locking=False, name='Momentum', use_nesterov=False)
AdamOptimizer(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, use_locking=False, \
name='Adam')
AdagradOptimizer(learning_rate, initial_accumulator_value=0.1, use_locking=False, name='Adagrad')
AdagradDAOptimizer(learning_rate, global_step, initial_gradient_squared_accumulator_value=0.1, \
l1_regularization_strength=0.0, l2_regularization_strength=0.0, use_locking=False, name='AdagradDA')
AdadeltaOptimizer(learning_rate=0.001, rho=0.95, epsilon=1e-08, use_locking=False, name='Adadelta')
RMSPropOptimizer(learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False, \
centered=False, name='RMSProp')
FtrlOptimizer(learning_rate, learning_rate_power=-0.5, initial_accumulator_value=0.1, \
l1_regularization_strength=0.0, l2_regularization_strength=0.0, use_locking=False, name='Ftrl', \
accum_name=None, linear_name=None, l2_shrinkage_regularization_strength=0.0)
ProximalGradientDescentOptimizer(learning_rate, l1_regularization_strength=0.0, \
l2_regularization_strength=0.0, use_locking=False, name='ProximalGradientDescent')
ProximalAdagradOptimizer(learning_rate, initial_accumulator_value=0.1, \
l1_regularization_strength=0.0, l2_regularization_strength=0.0, use_locking=False, \
name='ProximalAdagrad')
LazyAdamOptimizer(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, use_locking=False, \
name='Adam')
AdamWOptimizer(weight_decay, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, \
use_locking=False, name='AdamW')
MomentumWOptimizer(weight_decay, learning_rate, momentum, use_locking=False, name='MomentumW', \
use_nesterov=False)
LARSOptimizer(learning_rate, momentum=0.9, weight_decay=0.0001, eeta=0.001, epsilon=0.0, \
name='LARSOptimizer', skip_list=None, use_nesterov=False)
MovingAverageOptimizer(opt, average_decay=0.9999, num_updates=None, sequential_update=True)
DecoupledWeightDecayExtension(weight_decay, **kwargs)
ExponentialMovingAverage(decay, num_updates=None, zero_debias=False, \
name='ExponentialMovingAverage')
Optimizer.minimize(loss, global_step=None, var_list=None, gate_gradients=1, \
aggregation_method=None, colocate_gradients_with_ops=False, name=None, grad_loss=None, \
memory_budget=None)
Optimizer.compute_gradients(loss, var_list=None, gate_gradients=1, aggregation_method=None, \
colocate_gradients_with_ops=False, grad_loss=None, memory_budget=None)
Optimizer.apply_gradients(grads_and_vars, global_step=None, name=None)
Optimizer.get_slot(var, name)
Optimizer.get_slot_names()
Optimizer.variables()
Optimizer.get_name()
AdamWOptimizer.minimize(loss, global_step=None, var_list=None, gate_gradients=1, \
aggregation_method=None, colocate_gradients_with_ops=False, name=None, grad_loss=None, \
decay_var_list=None, memory_budget=None)
AdamWOptimizer.apply_gradients(grads_and_vars, global_step=None, name=None, decay_var_list=None)
MovingAverageOptimizer.swapping_saver(var_list=None, name='swapping_saver', **kwargs)
ExponentialMovingAverage.apply(var_list=None)
ExponentialMovingAverage.average(var)
ExponentialMovingAverage.average_name(var)
ExponentialMovingAverage.variables_to_restore(moving_avg_variables=None)
extend_with_decoupled_weight_decay(base_optimizer)
exponential_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None)
natural_exp_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None)
inverse_time_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None)
piecewise_constant(x, boundaries, values, name=None)
piecewise_constant_decay(x, boundaries, values, name=None)
polynomial_decay(learning_rate, global_step, decay_steps, end_learning_rate=0.0001, power=1.0, \
cycle=False, name=None)
cosine_decay(learning_rate, global_step, decay_steps, alpha=0.0, name=None)
cosine_decay_restarts(learning_rate, global_step, first_decay_steps, t_mul=2.0, m_mul=1.0, \
alpha=0.0, name=None)
linear_cosine_decay(learning_rate, global_step, decay_steps, num_periods=0.5, alpha=0.0, \
beta=0.001, name=None)
noisy_linear_cosine_decay(learning_rate, global_step, decay_steps, initial_variance=1.0, \
variance_decay=0.55, num_periods=0.5, alpha=0.0, beta=0.001, name=None)
create_global_step(graph=None)
get_global_step(graph=None)
get_or_create_global_step(graph=None)
global_step(sess, global_step_tensor)
assert_global_step(global_step_tensor)
"""


@pytest.mark.parametrize("line", SIGNATURES.strip().splitlines())
def test_signature(line: str) -> None:
    name, _, arguments = line.partition("(")
    found: object = hr.train
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(found).parameters.values()
        # The base class takes the hyperparameters of its subclasses, after TensorFlow's arguments.
        if parameter.name not in ("self", "hyperparameters")
    ]
    assert f"({', '.join(map(str, parameters))})" == f"({arguments}"


def test_values_of_gate_gradients() -> None:
    base = hr.train.Optimizer
    assert (base.GATE_NONE, base.GATE_OP, base.GATE_GRAPH) == (0, 1, 2)
