"""What a model's methods say they need beyond their first arguments, read off their signatures once per class."""

import difflib
import functools
import inspect

from pfbr.errors import ModelError

GIVEN = ("dt", "time", "inputs", "params", "observed")
# The first arguments of each method, and which words of `GIVEN` make sense there.
METHODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sample_prior": (("key",), ("params",)),
    "log_prior": (("x",), ("params",)),
    "prior_from_normal": (("z",), ("params",)),
    "sample_transition": (("key", "x"), ("dt", "time", "inputs", "params")),
    "log_transition": (("x_next", "x"), ("dt", "time", "inputs", "params")),
    "transition_from_normal": (("x", "z"), ("dt", "time", "inputs", "params")),
    "transition_mean_and_std": (("x",), ("dt", "time", "inputs", "params")),
    "log_likelihood": (("x", "observation"), GIVEN),
    "sample_observation": (("key", "x"), ("dt", "time", "inputs", "params")),
    "linear_gaussian": ((), ("dt", "time", "inputs", "params")),
    "sample_parameters": (("key",), ()),
    "log_parameters": (("params",), ()),
    "sample_inputs": (("key",), ()),
    "sample_dt": (("key",), ()),
}
PASSED_ON = "**"  # a model around another takes whatever the inner one needs


@functools.lru_cache(maxsize=1024)
def declared(cls: type) -> dict[str, tuple[str, ...]]:
    """The words that each method of the class names; an error names the method and the word that is none of them."""
    return {name: _of_method(cls, name) for name in METHODS if hasattr(cls, name)}


def needs(model, method: str) -> tuple[str, ...]:
    """What `method` of this model needs; a model around another needs what the inner one does."""
    words = declared(type(model)).get(method, ())  # type: ignore[arg-type]
    if PASSED_ON not in words:
        return words
    inner = getattr(model, "model", None)
    passed_on = () if inner is None else needs(inner, method)
    return tuple(dict.fromkeys((*(word for word in words if word != PASSED_ON), *passed_on)))


def all_needs(model) -> frozenset[str]:
    """Every word that some method of the model needs."""
    return frozenset(word for method in METHODS for word in needs(model, method))


def _of_method(cls: type, name: str) -> tuple[str, ...]:
    first, possible = METHODS[name]
    written = getattr(cls, name)
    if not callable(written):
        raise ModelError(
            f"`{cls.__name__}.{name}` must be a method, ({', '.join(('self', *first))}); it is {_kind(written)}."
        )
    given = list(inspect.signature(written).parameters.values())
    static = isinstance(inspect.getattr_static(cls, name), staticmethod)
    if given and not static and given[0].kind is not given[0].VAR_POSITIONAL:
        given = given[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in given):
        return (PASSED_ON,) if any(p.kind is p.VAR_KEYWORD for p in given) else ()
    positional = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) < len(first):
        raise ModelError(
            f"`{cls.__name__}.{name}` must take ({', '.join(('self', *first))}) first; it takes "
            f"({', '.join(('self', *(p.name for p in given)))})."
        )
    further = given[len(first) :]
    words = []
    for parameter in further:
        if parameter.kind is parameter.VAR_KEYWORD:
            words.append(PASSED_ON)
        elif parameter.name in possible:
            words.append(parameter.name)
        elif parameter.default is inspect.Parameter.empty:
            raise ModelError(_unknown_word(cls, name, parameter.name, possible))
    return tuple(words)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _unknown_word(cls: type, method: str, word: str, possible: tuple[str, ...]) -> str:
    what = f"`{cls.__name__}.{method}` names `{word}`"
    if word in GIVEN:
        return f"{what}, which is not given there (it can name {', '.join(possible) or 'nothing more'})."
    near = difflib.get_close_matches(word, possible, n=1, cutoff=0.5)
    guess = f" Did you mean `{near[0]}`?" if near else ""
    known = ", ".join(possible) if possible else "nothing beyond its first arguments"
    return f"{what}, and nobody can give it that: it can name {known}.{guess} Or give `{word}` a default."
