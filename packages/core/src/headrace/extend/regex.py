"""Regular expressions of the ops on strings, for kernels that must agree on their syntax."""

from headrace.regex import bytes_of, compile_pattern, is_run, parse_rewrite, text_of

__all__ = ["bytes_of", "compile_pattern", "is_run", "parse_rewrite", "text_of"]
