"""NumPyro functions as models: `from_numpyro(fn)`, or three functions for a state that moves."""

from collections.abc import Callable
from typing import Any

from pfbr.errors import InputError, ModelError
from pfbr.models.base import Model


def from_numpyro(
    function: Callable | None = None,
    *,
    init: Callable | None = None,
    transition: Callable | None = None,
    emission: Callable | None = None,
    parameters: Callable | None = None,
    inputs: Any = None,
) -> Model:
    """A model from a NumPyro function `fn(inputs, y=None)` of one row, or of a table of rows in a plate.

    Its latent sites are the unknowns, by their names and on their scale; the site that takes `y` is the observation.
    Arguments beside `y` are the inputs: one as it is, several as a dict by their names. `inputs` is a table of them
    (N, …), as much as there is: shapes are read off it, and simulated streams draw their inputs from its rows. Without
    it, every input is one number.

    A state that moves is written as `init()`, `transition(x)` and `emission(x, y=None)`: the sites of `init` are the
    state, a dict; `transition` samples the same sites anew. They may name `dt`, `time`, `inputs` and, where
    `parameters()` draws static parameters, `params`.
    """
    three = {"init": init, "transition": transition, "emission": emission}
    missing = [name for name, given in three.items() if given is None]
    if (function is None) == (len(missing) == 3) or (function is None and missing):
        got = "both" if function is not None else f"no `{missing[0]}`"
        raise ModelError(
            "give one NumPyro function, `from_numpyro(fn)`, or three, `from_numpyro(init=…, transition=…, "
            f"emission=…)`; got {got if len(missing) < 3 else 'none'}."
        )
    if function is not None and parameters is not None:
        raise ModelError("`parameters` go with a state that moves; in `from_numpyro(fn)` every latent site is unknown.")
    try:
        import numpyro  # noqa: F401
    except ImportError:
        raise InputError('NumPyro is not installed: `pip install "pfbr[numpyro]"`.') from None
    if function is not None:
        from pfbr.models.numpyro.static import static_model

        return static_model(function, inputs)
    from pfbr.models.numpyro.state_space import state_space_model

    return state_space_model(init, transition, emission, parameters, inputs)  # type: ignore[arg-type]
