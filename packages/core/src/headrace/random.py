"""Random numbers under TensorFlow's longer names, as ``hr.random``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.candidate_sampling import all_candidate_sampler as all_candidate_sampler
from headrace.ops.candidate_sampling import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from headrace.ops.candidate_sampling import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from headrace.ops.candidate_sampling import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from headrace.ops.candidate_sampling import uniform_candidate_sampler as uniform_candidate_sampler
from headrace.ops.random import bernoulli as bernoulli
from headrace.ops.random import get_seed as get_seed
from headrace.ops.random import random_normal as normal
from headrace.ops.random import random_shuffle as shuffle
from headrace.ops.random import random_uniform as uniform
from headrace.ops.random import set_random_seed as set_random_seed
from headrace.ops.random import truncated_normal as truncated_normal
from headrace.ops.sampling import categorical as categorical
from headrace.ops.sampling import multinomial as multinomial
from headrace.ops.sampling import random_gamma as gamma
from headrace.ops.sampling import random_poisson as poisson
from headrace.ops.stateless import stateless_categorical as stateless_categorical
from headrace.ops.stateless import stateless_multinomial as stateless_multinomial
from headrace.ops.stateless import stateless_normal as stateless_normal
from headrace.ops.stateless import stateless_truncated_normal as stateless_truncated_normal
from headrace.ops.stateless import stateless_uniform as stateless_uniform
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("random", __name__)
