"""What went wrong inside a method that a user wrote, in a line, and what to do about it."""

import jax

from pfbr.errors import PfbrError

LONGEST = 200  # characters of somebody else's message


def in_words(error: BaseException) -> tuple[str, str]:
    """What was raised, and what to write instead."""
    lines = str(error).strip().split("\n")
    found = f"{type(error).__name__}: {lines[0][:LONGEST]}" if lines[0] else type(error).__name__
    if isinstance(error, PfbrError):
        return lines[0], "Mend what is named."
    if isinstance(error, SystemExit):
        return f"it exits (SystemExit: {error.code})", "A method returns or raises; it does not end the program."
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return found, "A NumPy function was called on a JAX array: use jax.numpy."
    if isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.TracerIntegerConversionError):
        return found, "A Python `if`, `while`, `int()` or `float()` depends on an array: use jnp.where or jax.lax.cond."
    return found, "The method must run under jax.jit and jax.vmap, for one x."
