"""Data assimilation as the literature measures it: Lorenz-63 and Lorenz-96 beside published errors of the analysis.

    python -m benchmarks.assimilation --seed 5000 --streams 25 --out docs/gallery/assimilation.jsonl

Error: root mean square over coordinates of the mean's distance from the simulated state, averaged over the reports
after the first 40; then mean, median and worst over streams of 440 reports. Nothing is tuned for a system. Published
figures are those in the settings files of DAPPER (Raanes and others), which repeat the articles that they name; their
filters are tuned for each system (inflation, jitter, localisation), and run once over about 1,000 reports.
"""

import argparse
from dataclasses import dataclass

import jax

from benchmarks import json_lines
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.run import measure, shown


@dataclass(frozen=True)
class Published:
    """A filter, its members, and the error that DAPPER's settings file gives."""

    method: str
    members: int
    error: float


@dataclass(frozen=True)
class System:
    """Settings of the literature, what was published about them, and what we run."""

    title: str
    source: str
    published: tuple[Published, ...]
    ours: tuple[tuple[str, int], ...]  # method and particles


SYSTEMS = {
    "lorenz63": System(
        "Lorenz-63, all three seen every 0.25 units of time, variance 2",
        "Sakov, Oliver and Bertino 2012, table 1 (DAPPER: Lorenz63/sakov2012)",
        (
            Published("square-root EnKF, inflation 1.02", 10, 0.60),
            Published("finite-size EnKF", 10, 0.54),
            Published("iterative smoother", 10, 0.31),
            Published("particle filter, tuned jitter", 100, 0.38),
            Published("particle filter, tuned jitter", 800, 0.28),
        ),
        (("auto", 100), ("auto", 256), ("auto", 800), ("enkf", 100), ("enkf", 800)),
    ),
    "lorenz96-10": System(
        "Lorenz-96, d = 10, every second one seen every 0.05, variance 1.5",
        "Bocquet 2010, figure 1 (DAPPER: Lorenz96/bocquet2010, the version with variance 1.5)",
        (
            Published("finite-size EnKF", 8, 0.31),
            Published("particle filter, tuned jitter", 100, 0.36),
            Published("particle filter, tuned jitter", 800, 0.25),
        ),
        (("auto", 100), ("auto", 256), ("auto", 800), ("enkf", 100), ("enkf", 800)),
    ),
    "lorenz96-40": System(
        "Lorenz-96, d = 40, all seen every 0.05, variance 1",
        "Sakov and Oke 2008 (DAPPER: Lorenz96/sakov2008)",
        (
            Published("localised transform filter (LETKF), radius 4, inflation 1.04", 7, 0.22),
            Published("square-root EnKF, inflation 1.013", 24, 0.18),
            Published("perturbed observations, inflation 1.06", 40, 0.22),
            Published("particle filter, tuned jitter", 3000, 0.26),
        ),
        (("auto", 24), ("auto", 40), ("enkf", 40)),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*SYSTEMS], help=", ".join(SYSTEMS))
    parser.add_argument("--seed", type=int, default=1000, help="of the first stream")
    parser.add_argument("--streams", type=int, default=25)
    parser.add_argument("--steps", type=int, help="only the first of each stream")
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    for name in args.names:
        print(f"\n{SYSTEMS[name].title}. {SYSTEMS[name].source}:")
        for one in SYSTEMS[name].published:
            print(f"    published {one.error:.2f}  {one.method}, N = {one.members}")
        for method, particles in SYSTEMS[name].ours:
            asked = {"seed": args.seed, "streams": args.streams, "particles": particles, "steps": args.steps}
            result = measure(PROBLEMS[name], method, **asked)
            print(shown(result), flush=True)
            json_lines.add(args.out, result)
            jax.clear_caches()


if __name__ == "__main__":
    main()
