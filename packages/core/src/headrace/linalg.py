"""Linear algebra, as ``hr.linalg``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

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

if _TYPE_CHECKING:
    from headrace.ops.linear_operators.circulant import (
        LinearOperatorCirculant as LinearOperatorCirculant,
    )
    from headrace.ops.linear_operators.circulant import (
        LinearOperatorCirculant2D as LinearOperatorCirculant2D,
    )
    from headrace.ops.linear_operators.circulant import (
        LinearOperatorCirculant3D as LinearOperatorCirculant3D,
    )
    from headrace.ops.linear_operators.composed import (
        LinearOperatorBlockDiag as LinearOperatorBlockDiag,
    )
    from headrace.ops.linear_operators.composed import (
        LinearOperatorComposition as LinearOperatorComposition,
    )
    from headrace.ops.linear_operators.composed import (
        LinearOperatorKronecker as LinearOperatorKronecker,
    )
    from headrace.ops.linear_operators.dense import (
        LinearOperatorFullMatrix as LinearOperatorFullMatrix,
    )
    from headrace.ops.linear_operators.dense import (
        LinearOperatorLowerTriangular as LinearOperatorLowerTriangular,
    )
    from headrace.ops.linear_operators.derived import LinearOperatorAdjoint as LinearOperatorAdjoint
    from headrace.ops.linear_operators.derived import (
        LinearOperatorInversion as LinearOperatorInversion,
    )
    from headrace.ops.linear_operators.diagonal import LinearOperatorDiag as LinearOperatorDiag
    from headrace.ops.linear_operators.householder import (
        LinearOperatorHouseholder as LinearOperatorHouseholder,
    )
    from headrace.ops.linear_operators.identity import (
        LinearOperatorIdentity as LinearOperatorIdentity,
    )
    from headrace.ops.linear_operators.identity import (
        LinearOperatorScaledIdentity as LinearOperatorScaledIdentity,
    )
    from headrace.ops.linear_operators.low_rank import (
        LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate,
    )
    from headrace.ops.linear_operators.operator import LinearOperator as LinearOperator
    from headrace.ops.linear_operators.toeplitz import (
        LinearOperatorToeplitz as LinearOperatorToeplitz,
    )
    from headrace.ops.linear_operators.zeros import LinearOperatorZeros as LinearOperatorZeros

# Imported when a program first names one: functions of matrices take operators from then on.
_LATER = {
    "LinearOperatorCirculant": "circulant",
    "LinearOperatorCirculant2D": "circulant",
    "LinearOperatorCirculant3D": "circulant",
    "LinearOperatorBlockDiag": "composed",
    "LinearOperatorComposition": "composed",
    "LinearOperatorKronecker": "composed",
    "LinearOperatorFullMatrix": "dense",
    "LinearOperatorLowerTriangular": "dense",
    "LinearOperatorAdjoint": "derived",
    "LinearOperatorInversion": "derived",
    "LinearOperatorDiag": "diagonal",
    "LinearOperatorHouseholder": "householder",
    "LinearOperatorIdentity": "identity",
    "LinearOperatorScaledIdentity": "identity",
    "LinearOperatorLowRankUpdate": "low_rank",
    "LinearOperator": "operator",
    "LinearOperatorToeplitz": "toeplitz",
    "LinearOperatorZeros": "zeros",
}

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorCirculant",
    "LinearOperatorCirculant2D",
    "LinearOperatorCirculant3D",
    "LinearOperatorComposition",
    "LinearOperatorDiag",
    "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder",
    "LinearOperatorIdentity",
    "LinearOperatorInversion",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular",
    "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz",
    "LinearOperatorZeros",
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "transpose",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]

if not _TYPE_CHECKING:
    _added, _names = _added_names("linalg", __name__)

    def __getattr__(name: str) -> _Any:
        """Return a class of linear operators, or what a plugin adds."""
        if name not in _LATER:
            return _added(name)
        from importlib import import_module

        import_module("headrace.ops.linear_operators")
        value = getattr(import_module(f"headrace.ops.linear_operators.{_LATER[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*_names(), *_LATER})
