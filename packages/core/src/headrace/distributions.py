"""Probability distributions, as ``hr.distributions``: samples, densities, statistics."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.distributions.bernoulli import Bernoulli as Bernoulli
from headrace.ops.distributions.beta import Beta as Beta
from headrace.ops.distributions.categorical import Categorical as Categorical
from headrace.ops.distributions.dirichlet import Dirichlet as Dirichlet
from headrace.ops.distributions.distribution import FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED
from headrace.ops.distributions.distribution import NOT_REPARAMETERIZED as NOT_REPARAMETERIZED
from headrace.ops.distributions.distribution import Distribution as Distribution
from headrace.ops.distributions.distribution import ReparameterizationType as ReparameterizationType
from headrace.ops.distributions.divergence import RegisterKL as RegisterKL
from headrace.ops.distributions.divergence import kl_divergence as kl_divergence
from headrace.ops.distributions.gamma import Exponential as Exponential
from headrace.ops.distributions.gamma import Gamma as Gamma
from headrace.ops.distributions.laplace import Laplace as Laplace
from headrace.ops.distributions.multinomial import DirichletMultinomial as DirichletMultinomial
from headrace.ops.distributions.multinomial import Multinomial as Multinomial
from headrace.ops.distributions.normal import Normal as Normal
from headrace.ops.distributions.student_t import StudentT as StudentT
from headrace.ops.distributions.uniform import Uniform as Uniform
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("distributions", __name__)
