"""The thresholds and counts of a filter, each with its reason."""

import equinox as eqx

from pfbr.flow.transport.transport import Transport
from pfbr.inference.adaptive.general import shipped
from pfbr.typing import Real


class Settings(eqx.Module):
    """Thresholds are traced, so that trying others compiles nothing anew; counts set shapes and loops."""

    stay: Real = 0.5  # ESS that weighing must leave: below, estimates lose more than moves cost
    enough: Real = 128.0  # ESS that is enough of any number of particles, if the error of the mean is as small too
    flow: Real = 0.9  # evenness that a flow must leave of the factors by which it changes weights
    even: Real = 0.97  # above it, what the factors say of mean and covariance moves the cloud, and they are given up
    least: Real = 0.3  # ESS that must be left after it all the same
    temper: Real = 0.5  # ESS that one tempering round leaves
    ancestors: Real = 0.25  # ESS that further draws must leave among the particles they come from
    learned: bool = eqx.field(static=True, default=True)  # try the learned map where the affine flow is not exact
    transport: Transport | None = None  # that map; None: the one that comes with the package
    misfit: Real = 0.02  # nats by which a likelihood may miss being quadratic and still count as one
    surprise: Real = 8.0  # nats below what the cloud's own draws would score
    wrong: Real = 0.3  # standard deviations of Monte Carlo error in the mean above which a step is flagged
    defensive: Real = 0.02  # mass of the wide Gaussian in the cloud's density: tails for surprises
    breadth: Real = 2.0  # its width
    slack: Real = 1.0  # standard errors by which wider kernels may be less likely than the best
    moves: int = eqx.field(static=True, default=4)  # Metropolis moves after each resampling
    rounds: int = eqx.field(static=True, default=24)  # tempering rounds at most: a bound on the time of a step
    tempered: int = eqx.field(static=True, default=1024)  # particles at most; noise parts the copies
    oversample: int = eqx.field(static=True, default=16)  # draws of the dynamics from each particle; 0: never
    oversampled: int = eqx.field(static=True, default=16384)  # such draws in all, at most
    second_look: int = eqx.field(static=True, default=16)  # reports that can be replayed; 0: never
    second_look_particles: int = eqx.field(static=True, default=4096)
    find_exact: bool = eqx.field(static=True, default=True)  # look for Gaussian cloud and quadratic likelihood first
    move_paths: bool = eqx.field(static=True, default=True)  # from the prior, while a stream is young
    match: bool = eqx.field(static=True, default=True)  # quasi-random matched normals where the model takes normals

    @property
    def map(self) -> Transport | None:
        """None: none is tried."""
        if not self.learned:
            return None
        return shipped() if self.transport is None else self.transport

    def draws_each(self, num_particles: int) -> int:
        """Further draws of the dynamics from each particle; 0: too many particles for that to be worth it."""
        times = min(self.oversample, self.oversampled // num_particles)
        return times if times > 1 else 0
