"""A model whose prior is another density, of its free numbers; everything else is its own."""

from typing import Any

from jax import numpy as jnp

from pfbr.models.base import LinearGaussian, Model, StateSpaceModel
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Key, Observation, Point, Scalar


class ReplacedPrior(Model):
    """`prior` has `sample(key)` and `log_density(x)` for free numbers, and `moments()`: mean and covariance where it is
    one Gaussian, else None."""

    model: Model
    prior: Any

    @property
    def dim(self) -> int:
        return int(self.model.dim)

    @property
    def unknowns(self):  # type: ignore[override]
        return self.model.unknowns

    def sample_free_prior(self, key: Key) -> Point:
        """Free numbers, as inference wants them: there and back through a constraint, digits would be lost."""
        return self.prior.sample(key)

    def log_free_prior(self, x: Point) -> Scalar:
        return self.prior.log_density(x)

    def sample_prior(self, key: Key) -> Any:
        unknowns = Unknowns.of(self.model)
        free = self.prior.sample(key)
        return free if unknowns is None else unknowns.constrain(free)

    def log_prior(self, x: Any) -> Scalar:
        unknowns = Unknowns.of(self.model)
        if unknowns is None:
            return self.prior.log_density(x)
        free = unknowns.unconstrain(x)
        return self.prior.log_density(free) - unknowns.log_det(free)

    def log_likelihood(self, x: Any, observation: Observation, **given: Any) -> Any:
        return self.model.log_likelihood(x, observation, **given)

    def sample_observation(self, key: Key, x: Any, **given: Any) -> Observation:
        return self.model.sample_observation(key, x, **given)

    def linear_gaussian(self, **given: Any) -> LinearGaussian | None:
        system, moments = self.model.linear_gaussian(**given), self.prior.moments()
        if system is None or moments is None:
            return None
        return system._replace(mean=jnp.asarray(moments[0]), cov=jnp.asarray(moments[1]))

    def sample_inputs(self, key: Key) -> Any:
        return self.model.sample_inputs(key)

    def sample_dt(self, key: Key) -> Scalar:
        return self.model.sample_dt(key)


class ReplacedPriorOfState(ReplacedPrior, StateSpaceModel):
    """The same for a model that moves: the density is that of the state before the first observation."""

    model: StateSpaceModel

    def sample_transition(self, key: Key, x: Any, **given: Any) -> Any:
        return self.model.sample_transition(key, x, **given)

    def log_transition(self, x_next: Any, x: Any, **given: Any) -> Scalar:
        return self.model.log_transition(x_next, x, **given)

    def transition_from_normal(self, x: Any, z: Point, **given: Any) -> Any:
        return self.model.transition_from_normal(x, z, **given)

    def transition_mean_and_std(self, x: Any, **given: Any) -> Any:
        return self.model.transition_mean_and_std(x, **given)


def with_prior(model: Model, prior: Any) -> ReplacedPrior:
    """The model with another prior."""
    kind = ReplacedPriorOfState if isinstance(model, StateSpaceModel) else ReplacedPrior
    return kind(model, prior)  # type: ignore[arg-type]
