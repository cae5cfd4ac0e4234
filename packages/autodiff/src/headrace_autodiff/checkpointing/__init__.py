"""Gradients in less memory: values of the forward pass that are computed again when needed.

``budget`` reads what users ask for, ``uses`` finds out which values the rules need, ``chain`` cuts
the forward pass into stages, ``planning`` chooses what to keep, ``again`` makes the copies, and
``replay`` lets the walk differentiate those.
"""
