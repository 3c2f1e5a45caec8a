"""What benchmarks of calibration share: a method broken on purpose, and the line that is kept of a verdict."""

import equinox as eqx

from benchmarks import json_lines
from pfbr.inference.method import Method
from pfbr.judging.calibration.calibrate import Calibration, CalibrationSettings
from pfbr.particles.particles import Particles, weighted_mean


class Narrow(Method):
    """Another method whose particles are shown nearer to their mean than they are."""

    method: Method
    share: float = eqx.field(static=True)

    def init(self, key, model, num_particles):
        return self.method.init(key, model, num_particles)

    def update(self, key, model, state, observation):
        return self.method.update(key, model, state, observation)

    def particles(self, state) -> Particles:
        shown = self.method.particles(state)
        mean = weighted_mean(shown)
        return Particles(mean + self.share * (shown.points - mean), shown.log_weights)


def tell(name: str, found: Calibration, settings: CalibrationSettings, *, seed, broken, seconds, out) -> None:
    line = {
        "model": name,
        "broken": broken,
        "seed": seed,
        "streams": settings.streams,
        "length": settings.length,
        "particles": settings.num_particles,
        "trusted": found.trusted,
        "least p": float(found.arrays["p_values"].min()),
        "failed stages": found.settings["failed_stages"],
        "coverage of 95 % intervals": found.arrays["coverage"][-1].mean(axis=0).round(3).tolist(),
        "CPU seconds, compilation included": round(seconds, 1),
    }
    print(line, found.verdict, sep="\n", flush=True)
    json_lines.add(out, line)
