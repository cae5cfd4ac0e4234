"""The vocabulary: every op's one declaration, by family.

Importing this package declares all of core's ops.
"""

from headrace.ops import array as array
from headrace.ops import constant as constant
from headrace.ops import control as control
from headrace.ops import conv as conv
from headrace.ops import elementwise as elementwise
from headrace.ops import indexing as indexing
from headrace.ops import linalg as linalg
from headrace.ops import nn as nn
from headrace.ops import queue as queue
from headrace.ops import random as random
from headrace.ops import reduce as reduce
from headrace.ops import state as state
from headrace.ops import transfer as transfer
