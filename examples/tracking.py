"""A boat followed by three sensors that measure ranges at irregular times, one of which falls silent; an animation.

python examples/tracking.py --picture docs/images/gallery_tracking.gif
"""

import jax
import numpy as np
import pictures
from common import command_line
from jax import numpy as jnp

import pfbr

SENSORS = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 90.0]], np.float32)
NOISE, PUSH, SILENT = 1.5, 0.5, (60.0, 95.0)  # of a range; of velocity in a unit of time; the third sensor's
START, SPREAD = np.array([50.0, 40.0, 0.0, 0.0], np.float32), np.array([25.0, 25.0, 2.0, 2.0], np.float32)


class Boat(pfbr.StateSpaceModel):
    """x: position and velocity, which is pushed about at random; `inputs` says which sensor reports."""

    dim: int = 4

    def prior_from_normal(self, z):
        return START + SPREAD * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (4,)))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x, START, SPREAD))

    def transition_from_normal(self, x, z, *, dt):
        a, b = jnp.sqrt(dt**3 / 3), jnp.sqrt(3 * dt) / 2
        c = jnp.sqrt(dt) / 2
        return jnp.concatenate([x[:2] + dt * x[2:] + PUSH * a * z[:2], x[2:] + PUSH * (b * z[:2] + c * z[2:])])

    def sample_transition(self, key, x, *, dt):
        return self.transition_from_normal(x, jax.random.normal(key, (4,)), dt=dt)

    def log_likelihood(self, x, observation, *, inputs):
        apart = x[:2] - jnp.asarray(SENSORS)[inputs]
        return jax.scipy.stats.norm.logpdf(observation[0], jnp.sqrt(jnp.sum(apart**2) + 1e-9), NOISE)


def journey(t: np.ndarray) -> np.ndarray:
    """Where the boat is (T, 2): a loop that the model knows nothing about."""
    return np.column_stack([50 + 38 * np.sin(t / 18), 40 + 30 * np.sin(t / 9)])


def reports(seed: int, length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, which sensor, and its range; NaN where a report was lost."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(0.6, int(3 * length)) + 0.02)
    times = times[times < length]
    sensor = rng.integers(3, size=len(times)).astype(np.int32)
    ranges = np.hypot(*(journey(times) - SENSORS[sensor]).T) + NOISE * rng.normal(size=len(times))
    lost = (rng.random(len(times)) < 0.1) | ((sensor == 2) & (times > SILENT[0]) & (times < SILENT[1]))
    return times, sensor, np.where(lost, np.nan, ranges)


def main(length: float = 120.0, seed: int = 3, num_particles: int = 256, picture: str = "") -> dict:
    times, sensor, ranges = reports(seed, length)
    truth, figures = journey(times), {"reports": len(times), "lost": int(np.isnan(ranges).sum())}
    for method, more in (("auto", 1), ("smc", 1), ("smc", 16), ("enkf", 1)):
        particles = more * num_particles
        settings = {"times": times, "inputs": sensor, "method": method, "num_particles": particles, "key": 1}
        trace = pfbr.run(Boat(), ranges[:, None], **settings)
        error = np.hypot(*(trace.mean()[:, :2] - truth).T)[20:]
        (low, high), off = trace.quantile([0.05, 0.95])[:, :, :2], np.sqrt(np.mean(error**2))
        inside = np.mean((low <= truth) & (truth <= high))
        told = f"off by {off:.2f}, at worst {error.max():.1f}; {inside:.3f} in 90 % intervals"
        figures[f"{method}, {particles} particles"] = told
        if method == "auto" and picture:
            pictures.tracking(picture, times, sensor, ranges, truth, trace.samples[..., :2], SENSORS)
    return figures


if __name__ == "__main__":
    command_line(main)
