"""Two hundred thermometers at once, each with an offset and a noise of its own; one breaks, and its evidence tells.

    python examples/sensors.py --picture docs/images/gallery_sensors.png

The temperatures are real (San Francisco, January 2010), the thermometers are simulated.
"""

import jax
import numpy as np
import pictures
from common import command_line, table
from jax import numpy as jnp

import pfbr

BREAKS = 0.6  # after this share of the hours the broken one sticks to its last value
DAY, BAR = 24, 20.0  # hours that are summed; nats below what a sensor is used to: by chance 1.6e-5 a day (χ²₂₄ > 64)


class Thermometer(pfbr.Model):
    """A reading is the temperature of the reference station (an input), an offset, and noise."""

    unknowns = {"offset": (), "noise": pfbr.positive}

    def sample_prior(self, key):
        a, b = jax.random.normal(key, (2,))
        return {"offset": 2 * a, "noise": jnp.exp(-1 + 0.7 * b)}

    def log_prior(self, x):
        normal, log_noise = jax.scipy.stats.norm.logpdf, jnp.log(x["noise"])
        return normal(x["offset"], 0, 2) + normal(log_noise, -1, 0.7) - log_noise

    def log_likelihood(self, x, observation, *, inputs):
        return jax.scipy.stats.norm.logpdf(observation[0], inputs + x["offset"], x["noise"])


def readings(sensors: int, hours: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Readings (hours, sensors), the reference, the true offsets, and which one breaks; one in twenty is lost."""
    reference, rng = table("temperatures")["celsius"][:hours], np.random.default_rng(seed)
    offset, noise = 2 * rng.normal(size=sensors), np.exp(-1 + 0.5 * rng.normal(size=sensors))
    values = reference[:, None] + offset + noise * rng.normal(size=(hours, sensors))
    broken, stuck = int(rng.integers(sensors)), int(BREAKS * hours)
    values[stuck:, broken] = values[stuck, broken]
    values[rng.random((hours, sensors)) < 0.05] = np.nan
    return values.astype(np.float32), reference, offset, broken


def main(sensors: int = 200, hours: int = 300, seed: int = 2, picture: str = "") -> dict:
    values, reference, offset, broken = readings(sensors, hours, seed)
    names = [f"sensor {i}" for i in range(sensors)]
    panel, gained = pfbr.Panel(Thermometer(), capacity=sensors, num_particles=64, key=1), np.zeros((hours, sensors))
    for hour in range(hours):
        said = panel.update(values[hour][:, None], names, inputs=np.full(sensors, reference[hour]))
        gained[hour] = said.info.log_predictive
    usual = np.cumsum(gained, 0) / np.arange(1, hours + 1)[:, None]
    window = np.array([gained[max(0, t - DAY + 1) : t + 1].sum(0) - DAY * usual[max(0, t - DAY)] for t in range(hours)])
    window[: 3 * DAY] = 0  # what is usual has to be learned first
    alarms = {i: int(np.argmax(window[:, i] < -BAR)) for i in range(sensors) if np.any(window[:, i] < -BAR)}
    deviation = np.abs(values - reference[:, None] - np.nanmean(values[:DAY] - reference[:DAY, None], 0))
    rule = {
        i
        for i in range(sensors)
        if np.nanmax(deviation[3 * DAY :, i]) > 3 * np.nanstd(values[:DAY] - reference[:DAY, None])
    }
    figures = {
        "reports": panel.num_reports,
        "moved": panel.share_moved,
        "broken": broken,
        "hours until it is found": alarms.get(broken, np.nan) - int(BREAKS * hours),
        "false alarms": len(alarms.keys() - {broken}),
        "rule of three sigma for all: found, false alarms": (broken in rule, len(rule - {broken})),
        "error of the offsets": float(np.sqrt(np.mean(np.delete(said.mean()["offset"] - offset, broken) ** 2))),
    }
    if picture:
        pictures.sensors(picture, values - reference[:, None], window, broken, int(BREAKS * hours), -BAR)
    return figures


if __name__ == "__main__":
    command_line(main)
