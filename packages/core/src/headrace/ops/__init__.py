"""The vocabulary: every op's one declaration, by family.

Importing this package declares all of core's ops.
"""

from headrace.ops import accumulator as accumulator
from headrace.ops import activation as activation
from headrace.ops import arithmetic as arithmetic
from headrace.ops import array as array
from headrace.ops import barrier as barrier
from headrace.ops import bits as bits
from headrace.ops import candidate_sampling as candidate_sampling
from headrace.ops import checks as checks
from headrace.ops import clip as clip
from headrace.ops import complex as complex
from headrace.ops import cond as cond
from headrace.ops import constant as constant
from headrace.ops import control as control
from headrace.ops import conv as conv
from headrace.ops import conversion as conversion
from headrace.ops import ctc as ctc
from headrace.ops import decompositions as decompositions
from headrace.ops import edit_distance as edit_distance
from headrace.ops import elementwise as elementwise
from headrace.ops import fourier as fourier
from headrace.ops import function as function
from headrace.ops import gather as gather
from headrace.ops import identity as identity
from headrace.ops import image as image
from headrace.ops import indexing as indexing
from headrace.ops import joining as joining
from headrace.ops import linalg as linalg
from headrace.ops import lookup as lookup
from headrace.ops import loop as loop
from headrace.ops import matrix_functions as matrix_functions
from headrace.ops import nn as nn
from headrace.ops import padding as padding
from headrace.ops import pool as pool
from headrace.ops import python_call as python_call
from headrace.ops import queue as queue
from headrace.ops import random as random
from headrace.ops import rearrange as rearrange
from headrace.ops import reduce as reduce
from headrace.ops import report as report
from headrace.ops import sampling as sampling
from headrace.ops import sets as sets
from headrace.ops import solving as solving
from headrace.ops import special as special
from headrace.ops import staging as staging
from headrace.ops import state as state
from headrace.ops import stateless as stateless
from headrace.ops import tensor_list as tensor_list
from headrace.ops import text as text
from headrace.ops import text_convert as text_convert
from headrace.ops import text_hash as text_hash
from headrace.ops import transcendental as transcendental
from headrace.ops import transfer as transfer
