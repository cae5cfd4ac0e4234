"""Matrices, their decompositions, and Fourier transforms."""

from __future__ import annotations

from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

ROWS.same("Cholesky MatrixDeterminant MatrixLogarithm MatrixSquareRoot")
ROWS.same("LogMatrixDeterminant", outputs=2)
ROWS.same("MatrixInverse MatrixSolve", attrs="adjoint")
ROWS.same("Qr", attrs="full_matrices", outputs=2)
ROWS.same("Lu", attrs="output_idx_type", outputs=2)
ROWS.same("FFT FFT2D FFT3D IFFT IFFT2D IFFT3D", types="Tcomplex")


@ROWS.add("Svd")
def _svd(node: ExportedNode) -> list[str]:
    attrs = {name: node.attr(name) for name in ("compute_uv", "full_matrices")}
    made = node.emit("Svd", *node.inputs, T=node.dtype(), **attrs)
    return [made, f"{made}:1", f"{made}:2"]


@ROWS.add("SelfAdjointEig")
def _self_adjoint_eig(node: ExportedNode) -> list[str]:
    made = node.emit(
        "SelfAdjointEigV2", *node.inputs, T=node.dtype(), compute_v=node.attr("compute_v")
    )
    return [made, f"{made}:1"]


@ROWS.add("MatrixTriangularSolve")
def _triangular_solve(node: ExportedNode) -> str:
    if node.rank(0) != node.rank(1):
        raise node.refused("its matrices and right-hand sides must have one rank there")
    attrs = {name: node.attr(name) for name in ("lower", "adjoint")}
    return node.emit("MatrixTriangularSolve", *node.inputs, T=node.dtype(), **attrs)
