"""How fast a live session answers: a row that is weighed, one that moves the particles, a whole stream, the first one.

Times are of the wall, one update after the other, as a user with a stream sees them. The same rows with `pfbr.run`, in
one compiled loop, show what is left when nothing is handed over between rows.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.session import Session
from pfbr.judging.frontier.models import Volatility
from pfbr.judging.timing import Timing, seconds_of
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.models.logistic_regression import LogisticRegression
from pfbr.particles.qmc import shuffled_sobol_normal
from pfbr.typing import Key

PARTICLES, ROWS, SEED = 256, 1000, 0
SETTLED = 100  # rows, before which nearly every one moves the particles


class Stream(NamedTuple):
    """A model and rows for it, with their inputs."""

    name: str
    model: Model
    observations: np.ndarray
    inputs: np.ndarray | None = None


class Streamed(NamedTuple):
    """Seconds of each update, and how its row was taken in."""

    seconds: np.ndarray
    moves: np.ndarray

    def median(self, *moves: str) -> float:
        return float(np.median(self.seconds[SETTLED:][np.isin(self.moves[SETTLED:], moves)]))


def streams() -> Iterator[Stream]:
    rng = np.random.default_rng(SEED)
    for d in (2, 10):
        covariates = rng.standard_normal((ROWS, d)).astype(np.float32)
        labels = (rng.random(ROWS) < 1 / (1 + np.exp(-covariates @ rng.standard_normal(d)))).astype(np.float32)
        yield Stream(f"logistic regression, d = {d}", LogisticRegression(d), labels[:, None], covariates)
    volatility = Volatility()
    yield Stream("stochastic volatility", volatility, _simulated(volatility))
    for d in (2, 10):
        linear = LinearDynamics.random(SEED, d)
        yield Stream(f"linear dynamics, d = {d}", linear, _simulated(linear))


def _simulated(model: StateSpaceModel) -> np.ndarray:
    def step(x, key):
        move_key, see_key = jax.random.split(key)
        x = model.sample_transition(move_key, x)
        return x, model.sample_observation(see_key, x)

    start = model.sample_prior(jax.random.key(SEED))
    return np.asarray(jax.lax.scan(step, start, jax.random.split(jax.random.key(SEED + 1), ROWS))[1])


def session_timings() -> Iterator[Timing]:
    """All lines, one by one, as they are measured."""
    group = f"an update of a live session, {PARTICLES} particles, a stream of {ROWS} rows, median of its kind"
    once = jnp.ones(PARTICLES)
    yield Timing(group, "a compiled call that adds one to 256 numbers", seconds_of(lambda: _one_more(once)))
    for stream in streams():
        first, one = _followed(stream)
        static = not isinstance(stream.model, StateSpaceModel)
        kinds = {"weighed": ("weighed",), "moved": ("flow", "tempered", "oversampled", "second look")}
        for kind, moves in kinds.items():
            count = int(np.isin(one.moves[SETTLED:], moves).sum())
            if count:
                note = f"{count} of {ROWS - SETTLED} rows"
                yield Timing(group, f"{stream.name}: {kind}", one.median(*moves), note)
        late = 1e3 * one.seconds[SETTLED:]
        note = f"99 of 100 within {np.percentile(late, 99):.2f} ms, longest {late.max():.1f} ms"
        yield Timing(group, f"{stream.name}: all rows, mean", float(one.seconds.mean()), note)
        if static or stream.name.endswith("10"):
            yield Timing("the first update, compilation included", stream.name, first)
    group = f"the same rows with `pfbr.run`, a row, {PARTICLES} particles"
    for stream in streams():
        yield Timing(group, stream.name, seconds_of(_recorded(stream), repeats=3) / ROWS)
    group = f"noise for {PARTICLES} particles, d = 10, a thousand times in one compiled loop, each"
    yield Timing(group, "independent normals", _looped(lambda key: jax.random.normal(key, (PARTICLES, 10))))
    yield Timing(group, "quasi-random normals", _looped(lambda key: shuffled_sobol_normal(key, PARTICLES, 10)))


@jax.jit
def _one_more(x):
    return x + 1


def _followed(stream: Stream) -> tuple[float, Streamed]:
    """Seconds of the first update, and of every one of a second session, for which all is compiled."""
    first = 0.0
    for key in (SEED, SEED + 1):
        session = Session(stream.model, num_particles=PARTICLES, key=key)
        taken: list[float] = []
        moves: list[Any] = []
        for place, row in enumerate(stream.observations):
            inputs = None if stream.inputs is None else stream.inputs[place]
            begun = time.perf_counter()
            posterior = session.update(row, inputs=inputs)
            taken.append(time.perf_counter() - begun)
            moves.append(posterior.info.move)
        first = first or taken[0]
    return first, Streamed(np.array(taken), np.array(moves))


def _recorded(stream: Stream) -> Callable[[], Any]:
    from pfbr.inference.run import run

    return lambda: run(stream.model, stream.observations, inputs=stream.inputs, num_particles=PARTICLES).particles


def _looped(draw: Callable[[Key], Any], times: int = 1000) -> float:
    """Seconds of one draw in a compiled loop: a call by itself takes longer than what it does."""

    @jax.jit
    def many(keys):
        return jax.lax.scan(lambda total, key: (total + jnp.sum(draw(key)), None), 0.0, keys)[0]

    keys = jax.random.split(jax.random.key(SEED), times)
    return seconds_of(lambda: many(keys), repeats=5) / times
