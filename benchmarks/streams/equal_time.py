"""The default method and its rivals with the same CPU time a step: each gets the particles that fit.

    python -m benchmarks.streams.equal_time ranges-much growth --seed 5000 --streams 25 --out records.jsonl

Ours runs with each number in `--particles`. A bootstrap filter then gets as many particles as take the same time, an
ensemble Kalman filter too, up to 4,096 (its error does not fall beyond); EKF and UKF have none. Rivals are tuned on
development seeds 1000–1003: resampling threshold, inflation, iterations, reach of sigma points. Error as in run.py.
"""

import argparse
import time

import jax
import numpy as np

from benchmarks import json_lines
from benchmarks.streams.brute_force import distances, moments
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.kalman_rivals import EKF, UKF, observing
from benchmarks.streams.problem import Problem
from benchmarks.streams.rotated import RotatedProblem
from pfbr.baselines import BootstrapSMC, EnKF
from pfbr.inference.method import Method
from pfbr.inference.registry import as_method

TUNING = range(1000, 1004)  # seeds
TWINS = {"ranges-little": "ranges-much"}  # tuned on another problem, whose truth takes a sixth of the time
TRIAL, TRIAL_ENSEMBLE = 20_000, 1024  # particles at which rivals are tuned
MOST_ENSEMBLE = 4096
CLOSE = 0.1  # of the time: as near as a rival's number of particles is brought


def settings_of(problem: Problem) -> dict[str, list[Method]]:
    particles: dict[str, list[Method]] = {
        "bootstrap": [BootstrapSMC(threshold=share) for share in (1.0, 0.5)],
        "EnKF": [EnKF(inflation=by) for by in (1.0, 1.02, 1.05, 1.15)],
    }
    if isinstance(problem, RotatedProblem):  # the mean of an observation says nothing of a volatility
        return particles
    seen = observing(problem.name)
    return particles | {
        "EKF": [EKF(seen, by, iterations=i) for by in (1.0, 1.2) for i in (1, 4)],
        "UKF": [UKF(seen, by, reach=reach) for by in (1.0, 1.2) for reach in (None, 3.0)],
    }


def follow(problem: Problem, method: Method, particles: int, seeds) -> tuple[np.ndarray, np.ndarray]:
    """Errors and CPU ms a step of each stream, compilation left out."""
    errors, spent, compiled = [], [], None
    for seed in seeds:
        model, simulated, truth = problem.model_of(seed), problem.simulate(seed), problem.truth(seed)
        given = (jax.random.key(seed), method, model, simulated.stream)
        if compiled is None:
            compiled = moments.lower(*given, particles).compile()
        begun = time.process_time()
        means = jax.block_until_ready(compiled(*given, particles))[0]
        spent.append(1e3 * (time.process_time() - begun) / len(simulated.states))
        error = np.sqrt(np.mean(distances(np.asarray(means, float), truth) ** 2))
        errors.append(error if np.isfinite(error) else np.inf)
    return np.array(errors), np.array(spent)


def tuned(problem: Problem, name: str, candidates: list[Method]) -> Method:
    """The one with the least median error on development seeds: means would be those of lost tracks."""
    particles = {"bootstrap": TRIAL, "EnKF": TRIAL_ENSEMBLE}.get(name, 2)
    scores = [np.median(follow(problem, method, particles, TUNING)[0]) for method in candidates]
    return candidates[int(np.argmin(scores))]


def fitting(problem: Problem, method: Method, particles: int, seeds, budget: float, most: int) -> int:
    """As many particles as take the time."""
    for _ in range(3):
        now = float(np.median(follow(problem, method, particles, seeds)[1]))
        if abs(now / budget - 1) < CLOSE or (particles == most and now < budget):
            break
        particles = int(np.clip(particles * budget / now, 16, most))
    return particles


def row(problem: str, method: str, particles: int, seeds, errors: np.ndarray, spent: np.ndarray, chosen: str) -> dict:
    fine = np.isfinite(errors)
    return {
        "problem": problem,
        "method": method,
        "settings": chosen,
        "particles": particles,
        "seed": seeds[0],
        "streams": len(seeds),
        "error": float(errors.mean()),
        "se": float(errors[fine].std(ddof=1) / np.sqrt(fine.sum())) if fine.sum() > 1 else float("nan"),
        "median": float(np.median(errors)),
        "worst": float(errors.max()),
        "ms": float(np.median(spent)),
    }


def shown(r: dict) -> str:
    return (
        f"{r['problem']} {r['method']} n={r['particles']} {r['settings']}: error {r['error']:.3f} ± {r['se']:.3f}, "
        f"median {r['median']:.3f}, worst {r['worst']:.3f}; {r['ms']:.2f} ms"
    )


def told(method: Method) -> str:
    """Its settings, for the record."""
    names = ("threshold", "inflation", "iterations", "reach")
    return ", ".join(f"{name} {getattr(method, name)}" for name in names if hasattr(method, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=PROBLEMS, metavar="NAMES", help=", ".join(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1010, help="of the first stream")
    parser.add_argument("--streams", type=int, default=25)
    parser.add_argument("--particles", type=int, nargs="+", default=[256, 16384])
    parser.add_argument("--out", help="a file of JSON lines, added to")
    args = parser.parse_args()
    seeds = range(args.seed, args.seed + args.streams)

    def tell(*figures) -> None:
        result = row(*figures)
        print(shown(result), flush=True)
        json_lines.add(args.out, result)

    for name in args.names:
        problem = PROBLEMS[name]
        twin = PROBLEMS[TWINS.get(name, name)]
        rivals = {kind: tuned(twin, kind, candidates) for kind, candidates in settings_of(problem).items()}
        for kind in {"EKF", "UKF"} & rivals.keys():
            tell(name, kind, 0, seeds, *follow(problem, rivals[kind], 2, seeds), told(rivals[kind]))
        for particles in args.particles:
            errors, spent = follow(problem, as_method("auto", problem.model), particles, seeds)
            tell(name, "auto", particles, seeds, errors, spent, "")
            for kind, trial, most in (("bootstrap", TRIAL, 10**6), ("EnKF", TRIAL_ENSEMBLE, MOST_ENSEMBLE)):
                # how many fit is found out with three streams, then all are run once
                count = fitting(problem, rivals[kind], trial, seeds[:3], float(np.median(spent)), most)
                tell(name, kind, count, seeds, *follow(problem, rivals[kind], count, seeds), told(rivals[kind]))
        jax.clear_caches()


if __name__ == "__main__":
    main()
