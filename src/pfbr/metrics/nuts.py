"""The true posterior by long Markov chains, for models without a formula or a grid, with a statement of their health.

NUTS (Hoffman and Gelman 2014) with window adaptation, from BlackJAX, which is an optional dependency.
"""

from collections.abc import Sequence

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError, PfbrError
from pfbr.metrics.truth import Truth
from pfbr.models.base import Model, StateSpaceModel
from pfbr.typing import Key, Observations, PerParticle, Points


class SampleTruth(Truth):
    """Draws of several chains in a row. Trust them where `r_hat` is below 1.01 and `ess` is in the hundreds."""

    draws: Float[Array, "... n d"]
    r_hat: Float[Array, "... d"]
    ess: Float[Array, "... d"]

    @property
    def mean(self) -> Float[Array, "... d"]:
        return jnp.mean(self.draws, axis=-2)

    def sample(self, key: Key, num: int) -> Points:
        """Draws picked at random, none twice."""
        if num > self.draws.shape[-2]:
            raise InputError(
                f"this truth holds {self.draws.shape[-2]} draws; got a request for {num}: run NUTS longer."
            )
        return jax.random.choice(key, self.draws, (num,), replace=False, axis=-2)

    def log_density(self, points: Points) -> PerParticle:
        raise InputError("a truth made of draws has no normalised density; compare samples (MMD², cross entropy).")


def nuts(
    key: Key,
    model: Model,
    observations: Observations,
    *,
    stages: Sequence[int] | None = None,
    num_draws: int = 1000,
    num_warmup: int = 500,
    chains: int = 4,
) -> SampleTruth:
    """The posteriors after the first m observations, for each m of `stages` (all, where not given).

    A model with dynamics is sampled as a whole path x_0 … x_T, of which x_m is kept. Chains start at prior draws:
    where the posterior has several modes, look at `r_hat` before believing it.
    """
    try:
        import blackjax
        from blackjax import diagnostics
    except ImportError:
        raise PfbrError("NUTS comes from BlackJAX, which is not installed: pip install 'pfbr[rivals]'.") from None
    observations = jnp.asarray(observations)
    length = observations.shape[0]
    wanted = list(range(1, length + 1)) if stages is None else list(stages)
    if not wanted or min(wanted) < 1 or max(wanted) > length:
        raise InputError(f"`stages` must be between 1 and {length}, the number of observations; got {wanted}.")
    moving = isinstance(model, StateSpaceModel)

    def log_joint(path, stage):
        if moving:
            start = model.log_prior(path[0]) + jnp.sum(jax.vmap(model.log_transition)(path[1:], path[:-1]))
            fits = jax.vmap(model.log_likelihood)(path[1:], observations)
        else:
            start = model.log_prior(path)
            fits = jax.vmap(model.log_likelihood, (None, 0))(path, observations)
        return start + jnp.sum(jnp.where(jnp.arange(length) < stage, fits, 0.0))

    def first(chain_key):
        x = model.sample_prior(chain_key)
        if not moving:
            return x
        keys = jax.random.split(chain_key, length)
        advance = lambda x, k: (model.sample_transition(k, x), model.sample_transition(k, x))
        return jnp.concatenate([x[None], jax.lax.scan(advance, x, keys)[1]])

    def one_chain(chain_key, stage):
        start_key, warmup_key, run_key = jax.random.split(chain_key, 3)
        density = lambda path: log_joint(path, stage)
        adaptation = blackjax.window_adaptation(blackjax.nuts, density)
        (state, parameters), _ = adaptation.run(warmup_key, first(start_key), num_warmup)
        kernel = blackjax.nuts(density, **parameters)

        def step(state, step_key):
            state, _ = kernel.step(step_key, state)
            return state, state.position[stage] if moving else state.position

        return jax.lax.scan(step, state, jax.random.split(run_key, num_draws))[1]

    @jax.jit
    def one_stage(inputs):
        stage_key, stage = inputs
        draws = jax.vmap(one_chain, (0, None))(jax.random.split(stage_key, chains), stage)
        r_hat = diagnostics.potential_scale_reduction(draws)
        return SampleTruth(draws.reshape(-1, draws.shape[-1]), r_hat, diagnostics.effective_sample_size(draws))

    return jax.lax.map(one_stage, (jax.random.split(key, len(wanted)), jnp.asarray(wanted)))
