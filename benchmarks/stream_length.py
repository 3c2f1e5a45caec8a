"""The picture of length: score above exact sampling after 1 … 1000 observations, GaussianMean d = 8, 256 particles.

    python benchmarks/stream_length.py --paper paper.pfbr --residual residual.pfbr --out docs/images/stream_length

The operators are trained on streams of ten observations only (benchmarks/scores.py gaussian-mean-8 --save). Writes
OUT.jsonl, OUT.png and OUT.svg.
"""

import argparse
import json

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from matplotlib import pyplot as plt

import pfbr
from pfbr.baselines import EnKF, OnePassSMC
from pfbr.metrics import cross_entropy
from pfbr.online import trace
from pfbr.particles import equally_weighted
from pfbr.tasks import simulate
from pfbr.truth import kalman

STAGES = np.array([1, 2, 5, 10, 20, 30, 60, 100, 200, 500, 1000])
COLOURS = ("#c0392b", "#2980b9", "#16a085", "#8e44ad", "#7f8c8d")
TEST_SEED, STREAMS, PARTICLES, DRAWS = 30_000, 25, 256, 1000


def scores(method, model):
    """Cross entropy above that of as many exact draws, (streams, stages)."""
    picked = jnp.asarray(STAGES - 1)

    @eqx.filter_jit
    def one(method, key):
        stream_key, run_key, draw_key, exact_key = jax.random.split(key, 4)
        observations, _ = simulate(stream_key, model, int(STAGES[-1]))
        truth = jax.tree.map(lambda leaf: leaf[picked], kalman(model, observations))
        draws = jax.vmap(lambda t, k: t.sample(k, DRAWS))(truth, jax.random.split(draw_key, len(STAGES)))
        best = jax.vmap(lambda t, k: t.sample(k, PARTICLES))(truth, jax.random.split(exact_key, len(STAGES)))
        run = trace(run_key, method, model, observations, PARTICLES).particles
        ours = jax.tree.map(lambda leaf: leaf[picked], run)
        return jax.vmap(cross_entropy)(ours, draws) - jax.vmap(lambda b, d: cross_entropy(equally_weighted(b), d))(
            best, draws
        )

    keys = jax.random.split(jax.random.key(TEST_SEED), STREAMS)
    return np.stack([np.asarray(one(method, key)) for key in keys])


def draw(results, out):
    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for (name, values), colour in zip(results.items(), COLOURS, strict=False):
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / STREAMS**0.5
        axes.plot(STAGES, mean, "o-", color=colour, label=name, markersize=4)
        axes.fill_between(STAGES, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.axhline(0, color="black", linewidth=1)
    axes.annotate("256 exact draws", (1, 0), xytext=(2, 4), textcoords="offset points", fontsize=9)
    axes.axvspan(1, 10, color="black", alpha=0.05, linewidth=0)
    axes.annotate("trained on streams\nof this length", (1.1, 60), fontsize=9)
    axes.set(
        xscale="log",
        xlabel="observations in the stream",
        ylabel="cross entropy above exact sampling (nats)",
        title=f"GaussianMean, d = 8, {PARTICLES} particles, mean ± standard error of {STREAMS} unseen streams",
    )
    axes.set_yscale("symlog", linthresh=0.1)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(0.02, 0.55))
    axes.grid(alpha=0.2)
    for ending in ("png", "svg"):
        figure.savefig(f"{out}.{ending}", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", help="the paper's operator, trained")
    parser.add_argument("--residual", help="the residual operator, trained")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    methods = {}
    if args.paper:
        methods["paper's operator"] = pfbr.load(args.paper)
    if args.residual:
        methods["residual operator (ours, trained)"] = pfbr.load(args.residual)
    methods["Gaussian operator (ours, training-free)"] = pfbr.gaussian_operator()
    methods["one-pass SMC"] = OnePassSMC()
    methods["ensemble Kalman filter"] = EnKF()
    model = pfbr.models.GaussianMean(8)
    results = {}
    with open(f"{args.out}.jsonl", "w") as file:
        for name, method in methods.items():
            results[name] = scores(method, model)
            for stage, column in zip(STAGES, results[name].T, strict=True):
                line = {"method": name, "stage": int(stage), "above exact": float(column.mean())}
                line["standard error"] = float(column.std(ddof=1) / STREAMS**0.5)
                file.write(json.dumps(line) + "\n")
            print(name, np.round(results[name].mean(axis=0), 3), flush=True)
    draw(results, args.out)


if __name__ == "__main__":
    main()
