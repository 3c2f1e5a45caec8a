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
from pfbr.inference.method import record
from pfbr.io.files import write_text
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import kalman
from pfbr.models.simulate import simulate
from pfbr.particles.particles import equally_weighted

STAGES = np.array([1, 2, 5, 10, 20, 30, 60, 100, 200, 500, 1000])
STYLES = {
    "paper's operator": "o-",
    "Gaussian operator (ours, training-free)": "o-",
    "residual operator (ours, trained)": "s--",  # dashed: it lies on the training-free one
    "one-pass SMC": "o-",
    "ensemble Kalman filter": "o-",
}
COLOURS = ("#c0392b", "#16a085", "#1f5fa8", "#8e44ad", "#7f8c8d")
TEST_SEED, STREAMS, PARTICLES, DRAWS = 30_000, 25, 256, 1000


def scores(method, model):
    """Cross entropy above that of as many exact draws, (streams, stages)."""
    picked = jnp.asarray(STAGES - 1)

    @eqx.filter_jit
    def one(method, key):
        stream_key, run_key, draw_key, exact_key = jax.random.split(key, 4)
        observations = simulate(stream_key, model, int(STAGES[-1])).observations
        truth = jax.tree.map(lambda leaf: leaf[picked], kalman(model, observations))
        draws = jax.vmap(lambda t, k: t.sample(k, DRAWS))(truth, jax.random.split(draw_key, len(STAGES)))
        best = jax.vmap(lambda t, k: t.sample(k, PARTICLES))(truth, jax.random.split(exact_key, len(STAGES)))
        run = record(run_key, method, model, observations, PARTICLES).particles
        ours = jax.tree.map(lambda leaf: leaf[picked], run)
        return jax.vmap(cross_entropy)(ours, draws) - jax.vmap(lambda b, d: cross_entropy(equally_weighted(b), d))(
            best, draws
        )

    keys = jax.random.split(jax.random.key(TEST_SEED), STREAMS)
    return np.stack([np.asarray(one(method, key)) for key in keys])


def draw(out):
    """The figure, from the records alone."""
    with open(f"{out}.jsonl") as file:
        lines = [json.loads(line) for line in file]
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    axes.axvspan(1, 10, color="black", alpha=0.05, linewidth=0)
    axes.text(1.08, 3000, "trained on streams\nof this length", fontsize=9, va="top")
    axes.axhline(0, color="black", linewidth=1)
    axes.text(1000, 0.012, "256 exact draws", fontsize=9, ha="right")
    for (name, style), colour in zip(STYLES.items(), COLOURS, strict=True):
        own = [line for line in lines if line["method"] == name]
        if not own:
            continue
        stages, mean, error = (np.array([line[k] for line in own]) for k in ("stage", "above exact", "standard error"))
        axes.plot(stages, mean, style, color=colour, label=name, markersize=4)
        axes.fill_between(stages, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_xlabel("observations in the stream")
    axes.set_ylabel("cross entropy above exact sampling (nats)")
    axes.set_title(f"GaussianMean, d = 8, {PARTICLES} particles: mean ± standard error of {STREAMS} unseen streams")
    axes.set(ylim=(-0.4, 5e3), xlim=(0.95, 1100))
    axes.set_yticks([-0.1, 0, 0.1, 1, 10, 100, 1000], ["−0.1", "0", "0.1", "1", "10", "100", "1000"])
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    axes.grid(alpha=0.2)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    for ending in ("png", "svg"):
        figure.savefig(f"{out}.{ending}", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", help="the paper's operator, trained")
    parser.add_argument("--residual", help="the residual operator, trained")
    parser.add_argument("--out", required=True)
    parser.add_argument("--redraw", action="store_true", help="only draw, from OUT.jsonl")
    args = parser.parse_args()
    if args.redraw:
        return draw(args.out)
    methods = {}
    if args.paper:
        methods["paper's operator"] = pfbr.load(args.paper)
    if args.residual:
        methods["residual operator (ours, trained)"] = pfbr.load(args.residual)
    methods["Gaussian operator (ours, training-free)"] = pfbr.gaussian_operator()
    methods["one-pass SMC"] = OnePassSMC()
    methods["ensemble Kalman filter"] = EnKF()
    model = pfbr.models.GaussianMean(8)
    lines = []
    for name, method in methods.items():
        result = scores(method, model)
        for stage, column in zip(STAGES, result.T, strict=True):
            line = {"method": name, "stage": int(stage), "above exact": float(column.mean())}
            line["standard error"] = float(column.std(ddof=1) / STREAMS**0.5)
            lines.append(json.dumps(line) + "\n")
        print(name, np.round(result.mean(axis=0), 3), flush=True)
    write_text(f"{args.out}.jsonl", "".join(lines))
    draw(args.out)


if __name__ == "__main__":
    main()
