"""Baselines on the 10-dimensional linear system: cross entropy, 25 sequences of 25 stages, beside exact draws.

python benchmarks/lds_baselines.py
"""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import BootstrapSMC, DaumHuang, EnKF, Exact, OptimalSMC, Prior
from pfbr.inference.method import record
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import kalman
from pfbr.models import LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.particles.resampling import resample

SEQUENCES, STAGES, TRUE_DRAWS = 25, 25, 2000
RUNS = [
    ("exact", Exact(), 256),
    ("fully adapted SMC", OptimalSMC(), 256),
    ("EnKF", EnKF(), 256),
    ("Daum-Huang", DaumHuang(), 256),
    ("bootstrap SMC", BootstrapSMC(), 256),
    ("bootstrap SMC", BootstrapSMC(), 8192),
    ("prior", Prior(), 256),
]


def main() -> None:
    model = LinearDynamics.random(0, 10)
    keys = jax.random.split(jax.random.key(0), SEQUENCES)
    streams = jax.vmap(lambda k: simulate(k, model, STAGES).observations)(keys)

    for name, method, num in RUNS:

        @jax.jit
        def score(inputs, method=method, num=num):
            key, observations = inputs
            run_key, truth_key, resample_key = jax.random.split(key, 3)
            truth = kalman(model, observations)
            said = record(run_key, method, model, observations, num)

            def stage(inputs):
                particles, truth, truth_key, resample_key = inputs
                draws = truth.sample(truth_key, TRUE_DRAWS)
                equal = resample(resample_key, particles, "multinomial")
                same = jnp.ptp(particles.log_weights) == 0.0
                weighted = cross_entropy(particles, draws)
                return weighted, jnp.where(same, weighted, cross_entropy(equal, draws))

            split = [jax.random.split(k, STAGES) for k in (truth_key, resample_key)]
            scores = jax.lax.map(stage, (said.particles, truth, *split))
            gained, size = said.info.log_predictive, said.info.ess
            evidence = jnp.full(STAGES, jnp.nan) if gained is None else gained
            return *scores, evidence, jnp.full(STAGES, float(num)) if size is None else size

        results = jax.lax.map(score, (jax.random.split(jax.random.key(1), SEQUENCES), streams))
        weighted, equal, evidence, size = (np.asarray(x) for x in results)
        error = weighted.mean(1).std(ddof=1) / SEQUENCES**0.5
        print(
            f"{name:18s} N={num:5d}  weighted {weighted.mean():7.3f} ± {error:.3f}  resampled {equal.mean():7.3f}  "
            f"median {np.median(weighted):6.2f}/{np.median(equal):6.2f}  log evidence {evidence.sum(1).mean():8.2f}  "
            f"ESS {size.mean():6.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
