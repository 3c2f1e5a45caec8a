"""Long NUTS chains in float64 (NumPyro) as truth; and the CPU seconds of the one chain that ours are compared with.

python -m benchmarks.static.chains diabetes-8 logistic-10 --seed 5000    # 1,000 warm-up, 1,000 draws, all rows
"""

import argparse
import time

import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.problem import Posterior, Problem

CHAINS, WARMUP, DRAWS = 4, 1000, 2500  # of the truth
MORE_DRAWS = {"student-3": 6000, "mixture-5": 4000}  # whose first rows mix slowly
MORE_CHAINS = {"mixture-5": 16, "process-13": 12}


def good_start(key, problem: Problem, stage: int):
    """Where a chain may begin: the most likely of a thousand prior draws."""
    points = jax.vmap(problem.model.sample_prior)(jax.random.split(key, 1000))
    value = jax.vmap(lambda x: problem.log_joint(x, stage) - problem.model.log_prior(x))(points)
    return points[jnp.argmax(jnp.where(jnp.isnan(value), -jnp.inf, value))]


def sampler(problem: Problem, stage: int, *, warmup: int, draws: int, chains: int):
    """NumPyro's, with a dense mass matrix; the first call of its `run` compiles."""
    try:
        from numpyro.infer import MCMC, NUTS
    except ImportError:
        raise SystemExit("truth by chains needs NumPyro: pip install numpyro") from None
    kernel = NUTS(potential_fn=lambda x: -problem.log_joint(x, stage), dense_mass=True, target_accept_prob=0.9)
    return MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )


def posterior_by_chains(problem: Problem, stage: int) -> Posterior:
    with jax.enable_x64(True):
        chains = MORE_CHAINS.get(problem.name, CHAINS)
        mcmc = sampler(problem, stage, warmup=WARMUP, draws=MORE_DRAWS.get(problem.name, DRAWS), chains=chains)
        from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

        keys = jax.random.split(jax.random.key(problem.seed), chains + 1)
        start = jnp.stack([good_start(k, problem, stage) for k in keys[1:]]).astype(jnp.float64)
        mcmc.run(keys[0], init_params=start)
        draws = np.asarray(mcmc.get_samples(group_by_chain=True), float)
    error = float(np.max(1 / np.sqrt(effective_sample_size(draws))))
    r_hat = split_gelman_rubin(draws).max()
    print(f"  {problem.name} {problem.seed}, {stage} rows: error {error:.3f} sd, R-hat {r_hat:.3f}", flush=True)
    flat = draws.reshape(-1, draws.shape[-1])
    return Posterior(flat.mean(0), np.cov(flat.T).reshape(2 * (problem.model.dim,)), np.nan, error)


def cost_of_a_chain(problem: Problem, runs: int = 3) -> tuple[float, float]:
    """CPU seconds of 1,000 + 1,000 on all rows in float32, without compilation: mean of runs; and the least ESS."""
    stage = len(problem.observations)
    mcmc = sampler(problem, stage, warmup=1000, draws=1000, chains=1)
    from numpyro.diagnostics import effective_sample_size

    seconds, size = [], []
    for run in range(runs + 1):  # the first compiles
        key = jax.random.key(problem.seed + run)
        start = good_start(key, problem, stage)
        begun = time.process_time()
        mcmc.run(key, init_params=start)
        draws = np.asarray(jax.block_until_ready(mcmc.get_samples(group_by_chain=True)))
        seconds.append(time.process_time() - begun)
        size.append(float(np.min(effective_sample_size(draws))))
    return float(np.mean(seconds[1:])), float(np.mean(size[1:]))


def main():
    from benchmarks.static.catalogue import PROBLEMS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seed", type=int, default=1000)
    args = parser.parse_args()
    for name in args.names:
        seconds, size = cost_of_a_chain(PROBLEMS[name](args.seed))
        print(f"{name}: {seconds:.2f} CPU s for one chain on all rows; least ESS {size:.0f} of 1,000", flush=True)


if __name__ == "__main__":
    main()
