"""One gradient rule per differentiable op, in files named by op family.

A rule takes the operation and the gradients of its outputs (None where none arrives, else dense)
and returns one gradient, or None, for each input. Rules are built of ordinary ops that have rules
themselves, so that gradients differentiate again.
"""

from __future__ import annotations

from headrace_autodiff.rules import (
    activation,
    array,
    checks,
    complex,
    cond,
    constant,
    control,
    conv,
    conversion,
    ctc,
    cumulative,
    decompositions,
    elementwise,
    fourier,
    function,
    gather,
    identity,
    image,
    indexing,
    joining,
    linalg,
    loop,
    matrix_functions,
    nn,
    padding,
    pool,
    quantization,
    rearrange,
    reduce,
    report,
    sampling,
    segment,
    solving,
    sort,
    sparse,
    special,
    state,
    tensor_list,
    transcendental,
    unique,
)

TABLES = tuple(
    module.RULES
    for module in (
        activation,
        array,
        checks,
        complex,
        cond,
        constant,
        control,
        conv,
        conversion,
        ctc,
        cumulative,
        decompositions,
        elementwise,
        fourier,
        function,
        gather,
        identity,
        image,
        indexing,
        joining,
        linalg,
        loop,
        matrix_functions,
        nn,
        padding,
        pool,
        quantization,
        rearrange,
        reduce,
        report,
        sampling,
        segment,
        solving,
        sort,
        sparse,
        special,
        state,
        tensor_list,
        transcendental,
        unique,
    )
)

__all__ = ["TABLES"]
