"""The edge of online inference: one observation at a time, or a whole stream; NumPy out, JAX inside."""

from collections import deque
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import ArrayLike

from pfbr.checks import (
    checked_key,
    checked_methods_of,
    checked_model,
    checked_num_particles,
    checked_observation,
    checked_observations,
)
from pfbr.errors import InputError, LikelihoodError
from pfbr.inference.corrected import Trusted
from pfbr.inference.method import OnlineMethod, Trace, trace, trace_many
from pfbr.inference.ood import remembered
from pfbr.inference.operator import Operator
from pfbr.models.base import Model, observation_shape
from pfbr.models.inverse_likelihood import Withdrawn
from pfbr.particles.particles import Particles, weighted_cov, weighted_mean
from pfbr.typing import Key, Observation


class Posterior:
    """What is believed after an observation. Arrays are NumPy's; they do not change when the session goes on."""

    def __init__(self, particles: Particles, info: dict):
        self._particles = particles
        self.info = {name: np.asarray(value).item() for name, value in info.items()}

    @property
    def particles(self) -> np.ndarray:
        """(n, d)"""
        return np.asarray(self._particles.points)

    @property
    def weights(self) -> np.ndarray:
        """(n,), summing to one"""
        return np.exp(np.asarray(self._particles.log_weights))

    @property
    def log_density(self) -> np.ndarray | None:
        """(n,), log q at each particle, where the method carries it"""
        density = self._particles.log_density
        return None if density is None else np.asarray(density)

    def mean(self) -> np.ndarray:
        return np.asarray(weighted_mean(self._particles))

    def cov(self) -> np.ndarray:
        return np.asarray(weighted_cov(self._particles))

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Quantiles of each coordinate, shape (…, d) for q of shape (…)."""
        q = np.asarray(q, dtype=float)
        if np.any((q < 0) | (q > 1)):
            raise InputError(f"a quantile lies between 0 and 1; got {q}.")
        order = np.argsort(self.particles, axis=0)
        sorted_points = np.take_along_axis(self.particles, order, axis=0)
        weights = self.weights[order]
        middle = np.cumsum(weights, axis=0) - 0.5 * weights
        return np.stack(
            [np.interp(q, middle[:, j], sorted_points[:, j]) for j in range(sorted_points.shape[1])], axis=-1
        )

    def expectation(self, function: Callable) -> np.ndarray:
        """E[function(x)] for a function of one x, written with NumPy or JAX."""
        values = np.stack([np.asarray(function(x)) for x in self.particles])
        return np.tensordot(self.weights, values, axes=1)

    def __repr__(self) -> str:
        n, d = self.particles.shape
        return f"Posterior({n} particles in {d}-d, mean {np.array2string(self.mean(), precision=3)})"


def init(key: Key, operator: OnlineMethod, model: Model, *, num_particles: int = 256) -> Any:
    """The state before any observation."""
    checked_fit_together(operator, checked_model(model))
    return operator.init(checked_key(key), model, checked_num_particles(num_particles))


def step(key: Key, operator: OnlineMethod, model: Model, state: Any, observation: Observation) -> tuple[Any, dict]:
    """The state after one more observation. Pure: jit, scan and vmap it; nothing is checked here."""
    return operator.update(key, model, state, observation)


@eqx.filter_jit
def _numbered_step(key: Key, stage: np.ndarray, operator: OnlineMethod, model: Model, state: Any, observation):
    """One step with a key that depends on the stage; derived inside, where it costs nothing."""
    return step(jax.random.fold_in(key, stage), operator, model, state, observation)


def run(key: Key, method: OnlineMethod, model: Model, observations: ArrayLike, *, num_particles: int = 256) -> Trace:
    """A whole stream (T, …), or many at once (S, T, …), in one compiled call."""
    checked_fit_together(method, checked_model(model))
    array, many = checked_observations(model, observations)
    result = (trace_many if many else trace)(
        checked_key(key), method, model, jnp.asarray(array), checked_num_particles(num_particles)
    )
    undefined = np.argwhere(np.asarray(result.info.get("nan", 0.0)) > 0)
    if undefined.size:
        share = np.asarray(result.info["nan"])[tuple(undefined[0])]
        raise LikelihoodError(_not_a_number(_where(undefined[0]), float(share)))
    lost = np.argwhere(~_has_posterior(result.particles, result.info))
    if lost.size:
        raise LikelihoodError(_no_posterior(_where(lost[0])))
    return result


class Session:
    """A posterior that is updated as observations come in.

    A refused observation leaves the session as it was. Every step of an operator is judged, and `info` says how far to
    trust it. With `repair` "never" the operator's particles are left as they are; with "auto" they are weighted and,
    where weights cannot mend a step, the step is done again; "always" does every step again (see `trusted`). None is
    the bare operator, a little faster. `undo` is how many past states are kept to be restored by `retract`.
    """

    def __init__(
        self,
        key: Key,
        operator: OnlineMethod,
        model: Model,
        *,
        num_particles: int = 256,
        repair: str | None = "never",
        keep_history: int = 0,
        undo: int = 8,
    ):
        self._key, init_key = jax.random.split(checked_key(key))
        checked_fit_together(operator, checked_model(model))
        if undo < 0:
            raise InputError(f"`undo` is a number of past states to keep, 0 for none; got {undo}.")
        # a rival has no log density to be judged by, and what is `Trusted` already says how far
        as_it_is = not isinstance(operator, Operator) and repair in (None, "never") and not keep_history
        if repair is not None and not as_it_is:
            used_to = remembered(operator) if isinstance(operator, Operator) else None
            operator = Trusted(
                operator,  # type: ignore[arg-type] # it checks
                repair=repair,
                keep_history=keep_history,
                reference=used_to,
            )
        elif repair is None and keep_history:
            raise InputError('`keep_history` is for `repair="auto"`, which judges particles against all observations.')
        self.operator, self.model = operator, checked_methods_of(checked_model(model))
        self._observation_shape = observation_shape(model)
        self._state = init(init_key, operator, model, num_particles=num_particles)
        self.stage = 0
        self._past: deque = deque(maxlen=undo)  # states before the last changes, and their stages

    def update(self, observation: ArrayLike) -> Posterior:
        """The posterior after one more observation."""
        return self._moved_on(self.model, observation, self.stage + 1, f"observation {self.stage + 1}")

    def retract(self, observation: ArrayLike | None = None) -> Posterior:
        """Take an observation back.

        Without an argument, the last one, and for moving unknowns the move before it; the posterior is then bit for
        bit what it was. So many in a row can be taken back as `undo` says. With an argument, that one, however long
        ago it came: where the unknown is at rest the flow is run backwards through it, which is as exact as an update
        (`info` says how far to trust it) and can itself be undone.
        """
        if observation is not None:
            return self._withdrawn(observation)
        if not self._past:
            why = f"the {self._past.maxlen} past states that it keeps are used up. Make it with a larger `undo`"
            if self.stage == 0:
                why = "there has been no observation yet; update it first"
            raise InputError(f"this session has nothing to retract: {why}.")
        self._state, self.stage = self._past.pop()
        return self.posterior

    def _withdrawn(self, observation: ArrayLike) -> Posterior:
        if not isinstance(self.operator, Operator | Trusted):
            raise InputError(
                f"only an operator's flow runs backwards; {type(self.operator).__name__} can take back the last "
                "observation only: call `retract()`."
            )
        if self.stage == 0:
            raise InputError("this session has nothing to retract: there has been no observation yet.")
        array = checked_observation(self.model, self._observation_shape, observation)
        history = getattr(self._state, "history", None)
        if history is not None and not any(np.array_equal(one, array) for one in history.stored[: int(history.count)]):
            raise InputError(f"{array} is not among the {int(history.count)} observations that this session has kept.")
        return self._moved_on(Withdrawn(self.model), array, self.stage - 1, f"taking back {array}")

    def _moved_on(self, model: Model, observation: ArrayLike, stage: int, what: str) -> Posterior:
        """The next state, unless it is none; then nothing has changed."""
        array = checked_observation(self.model, self._observation_shape, observation)
        # steps back have keys of their own, so that an update has the same one whatever was taken back before
        number = np.asarray(self.stage if stage > self.stage else -self.stage, np.int32)
        state, info = _numbered_step(self._key, number, self.operator, model, self._state, array)
        particles = self.operator.particles(state)
        if float(info.get("nan", 0.0)) > 0:
            raise LikelihoodError(_not_a_number(what, float(info["nan"])))
        if not _has_posterior(particles, info):
            raise LikelihoodError(_no_posterior(what))
        self._past.append((self._state, self.stage))
        self._state, self.stage = state, stage
        return Posterior(particles, info)

    @property
    def posterior(self) -> Posterior:
        """The current posterior, before or after any update."""
        return Posterior(self.operator.particles(self._state), {})


def checked_fit_together(method: OnlineMethod, model: Model) -> None:
    if not isinstance(method, OnlineMethod):
        raise InputError(
            "expected an operator (pfbr.load, pfbr.fit, pfbr.gaussian_operator) or a rival; "
            f"got {type(method).__name__}."
        )
    reason = method.unsupported(model)
    if reason is not None:
        raise InputError(reason)


def _has_posterior(particles: Particles, info: dict) -> np.ndarray:
    """Whether every particle is finite and, where the method says so, the observation is possible at some of them."""
    finite = np.all(np.isfinite(np.asarray(particles.points)), axis=(-2, -1))
    return finite & (np.asarray(info.get("alive", 1.0)) > 0)


def _no_posterior(where: str) -> str:
    return (
        f"{where} left no finite particles: its log likelihood is NaN, or −inf where the particles are. The model "
        "says that this observation is impossible: check its value and units, or give the likelihood heavier tails."
    )


def _where(index: np.ndarray) -> str:
    *stream, stage = (int(i) for i in index)
    return f"observation {stage + 1}" + (f" of stream {stream[0] + 1}" if stream else "")


def _not_a_number(where: str, share: float) -> str:
    return (
        f"{where} has a log likelihood that is NaN at {100 * share:.1f} % of the particles. An observation that is "
        "impossible at some x has −inf there; NaN is a fault of the model: look for 0/0, log of a negative number, or "
        "inf − inf in `log_likelihood`."
    )
