"""Initializers of variables under TensorFlow's shorter names, as ``hr.initializers``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.initializers import constant_initializer as constant
from headrace.ops.initializers import glorot_normal_initializer as glorot_normal
from headrace.ops.initializers import glorot_uniform_initializer as glorot_uniform
from headrace.ops.initializers import he_normal as he_normal
from headrace.ops.initializers import he_uniform as he_uniform
from headrace.ops.initializers import identity_initializer as identity
from headrace.ops.initializers import lecun_normal as lecun_normal
from headrace.ops.initializers import lecun_uniform as lecun_uniform
from headrace.ops.initializers import ones_initializer as ones
from headrace.ops.initializers import orthogonal_initializer as orthogonal
from headrace.ops.initializers import random_normal_initializer as random_normal
from headrace.ops.initializers import random_uniform_initializer as random_uniform
from headrace.ops.initializers import truncated_normal_initializer as truncated_normal
from headrace.ops.initializers import uniform_unit_scaling_initializer as uniform_unit_scaling
from headrace.ops.initializers import variance_scaling_initializer as variance_scaling
from headrace.ops.initializers import zeros_initializer as zeros
from headrace.ops.tables import tables_initializer as tables_initializer
from headrace.ops.variable import global_variables_initializer as global_variables
from headrace.ops.variable import local_variables_initializer as local_variables
from headrace.ops.variable import variables_initializer as variables
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("initializers", __name__)
