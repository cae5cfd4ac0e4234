"""Simplifying a step: algebraic rewrites, in the table ``RULES``, applied until none is left."""

from headrace.passes.simplify.engine import simplify as simplify
from headrace.passes.simplify.rules import Rewrite as Rewrite
from headrace.passes.simplify.rules import Rule as Rule
from headrace.passes.simplify.table import RULES as RULES
