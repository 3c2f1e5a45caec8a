"""Whether a function looks at its first argument: how deterministic dynamics are told from noisy ones."""

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import partial_eval


def depends_on_first(function: Callable, *examples: Any) -> bool:
    """Whether any output of `function(*examples)` is computed from the first argument, as its trace shows."""
    traced = jax.make_jaxpr(function)(*examples).jaxpr
    _, used = partial_eval.dce_jaxpr(traced, [True] * len(traced.outvars))
    return any(used[: len(jax.tree.leaves(examples[0]))])
