"""Linear algebra, as ``hr.linalg``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.clip import global_norm as global_norm
from headrace.ops.constant import eye as eye
from headrace.ops.contraction import einsum as einsum
from headrace.ops.contraction import tensordot as tensordot
from headrace.ops.decompositions import cholesky as cholesky
from headrace.ops.decompositions import lu as lu
from headrace.ops.decompositions import qr as qr
from headrace.ops.decompositions import self_adjoint_eig as eigh
from headrace.ops.decompositions import self_adjoint_eigvals as eigvalsh
from headrace.ops.decompositions import svd as svd
from headrace.ops.diag import diag as tensor_diag
from headrace.ops.diag import diag_part as tensor_diag_part
from headrace.ops.diag import matrix_band_part as band_part
from headrace.ops.diag import matrix_diag as diag
from headrace.ops.diag import matrix_diag_part as diag_part
from headrace.ops.diag import matrix_set_diag as set_diag
from headrace.ops.diag import matrix_transpose as matrix_transpose
from headrace.ops.diag import matrix_transpose as transpose
from headrace.ops.linalg import adjoint as adjoint
from headrace.ops.linalg import cross as cross
from headrace.ops.linalg import matmul as matmul
from headrace.ops.linalg import matvec as matvec
from headrace.ops.linalg import trace as trace
from headrace.ops.matrix_functions import matrix_exponential as expm
from headrace.ops.matrix_functions import matrix_logarithm as logm
from headrace.ops.matrix_functions import matrix_square_root as sqrtm
from headrace.ops.matrix_functions import tridiagonal_matmul as tridiagonal_matmul
from headrace.ops.matrix_functions import tridiagonal_solve as tridiagonal_solve
from headrace.ops.normalization import l2_normalize as l2_normalize
from headrace.ops.solving import cholesky_solve as cholesky_solve
from headrace.ops.solving import logdet as logdet
from headrace.ops.solving import lu_matrix_inverse as lu_matrix_inverse
from headrace.ops.solving import lu_reconstruct as lu_reconstruct
from headrace.ops.solving import lu_solve as lu_solve
from headrace.ops.solving import matrix_determinant as det
from headrace.ops.solving import matrix_inverse as inv
from headrace.ops.solving import matrix_rank as matrix_rank
from headrace.ops.solving import matrix_solve as solve
from headrace.ops.solving import matrix_solve_ls as lstsq
from headrace.ops.solving import matrix_triangular_solve as triangular_solve
from headrace.ops.solving import pinv as pinv
from headrace.ops.solving import slogdet as slogdet
from headrace.ops.statistics import norm as norm
from headrace.ops.statistics import normalize as normalize
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("linalg", __name__)
