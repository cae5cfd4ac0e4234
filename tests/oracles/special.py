"""Special functions."""

from __future__ import annotations

import headrace as hr

from .libraries import jsp
from .rows import fixed, normal, row, signed, uniform

ROWS = [
    row("lgamma", "jsp.gammaln", uniform(0.3, 5, 3, 4)),
    row("digamma", "jsp.digamma", uniform(0.3, 5, 3, 4)),
    row("erf", "jsp.erf", normal(3, 4)),
    row("erfc", "jsp.erfc", normal(3, 4)),
    row("erfinv", "jsp.erfinv", uniform(-0.9, 0.9, 3, 4)),
    row("ndtri", "jsp.ndtri", uniform(0.1, 0.9, 3, 4)),
    row("igamma", "jsp.gammainc", uniform(0.5, 3, 3, 4), uniform(0.5, 3, 3, 4)),
    row("igammac", "jsp.gammaincc", uniform(0.5, 3, 3, 4), uniform(0.5, 3, 3, 4)),
    row(
        "betainc",
        "jsp.betainc",
        fixed(uniform(0.5, 3, 3, 4)),
        fixed(uniform(0.5, 3, 3, 4)),
        uniform(0.1, 0.9, 3, 4),
    ),
    row(
        "polygamma",
        "jsp.polygamma",
        uniform(1, 5, 3, 4),
        ours=lambda x: hr.polygamma(hr.ones_like(x) * 2.0, x),
        theirs=lambda x: jsp.polygamma(2, x),
    ),
    row("zeta", "jsp.zeta", fixed(uniform(1.5, 4, 3, 4)), uniform(0.5, 3, 3, 4)),
    row(
        "lbeta",
        "jsp.betaln",
        uniform(0.5, 3, 4, 2),
        theirs=lambda x: jsp.betaln(x[:, 0], x[:, 1]),
    ),
    row("bessel_i0", "jsp.i0", signed(0.2, 3, 3, 4)),
    row("bessel_i0e", "jsp.i0e", signed(0.2, 3, 3, 4)),
    row("bessel_i1", "jsp.i1", signed(0.2, 3, 3, 4)),
    row("bessel_i1e", "jsp.i1e", signed(0.2, 3, 3, 4)),
]
