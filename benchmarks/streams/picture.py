"""The picture of the filters' page: one track by ranges, the default method beside two rivals and the truth."""

import jax
import numpy as np
from matplotlib.figure import Figure

from benchmarks.streams.brute_force import distances, moments
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.kalman_rivals import EKF, observing
from benchmarks.streams.tracking import SENSORS
from pfbr.baselines import BootstrapSMC
from pfbr.inference.registry import as_method
from pfbr.reporting.figures import INK

PROBLEM, SEED = "ranges-much", 5000
OURS, TRUTH, RIVAL, OTHER = "#1f63d2", "#6d4bb8", "#d1541c", "#5a606b"
SAME_TIME = 6000  # particles of a bootstrap filter that take the time of 256 of ours (equal_time.py)


def tracked() -> Figure:
    problem = PROBLEMS[PROBLEM]
    simulated, truth = problem.simulate(SEED), problem.truth(SEED)

    def means(method, particles):
        found = moments(jax.random.key(SEED), method, problem.model, simulated.stream, particles)
        return np.asarray(found[0], float)

    ours = means(as_method("auto", problem.model), 256)
    rivals = {
        f"bootstrap filter, {SAME_TIME:,} particles": (means(BootstrapSMC(), SAME_TIME), OTHER),
        "extended Kalman filter": (means(EKF(observing(PROBLEM)), 2), RIVAL),
    }
    figure = Figure(figsize=(9, 4.6), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    left.plot(*truth.means[:, :2].T, color=TRUTH, linewidth=3.5, alpha=0.45, label="true posterior mean")
    left.plot(*rivals["extended Kalman filter"][0][:, :2].T, color=RIVAL, linewidth=1, label="extended Kalman filter")
    left.plot(*ours[:, :2].T, color=OURS, linewidth=1.3, label="pfbr, 256 particles")
    left.plot(*SENSORS.T, "^", color=INK, markersize=8, label="sensors")
    left.set(xlabel="first coordinate (m)", ylabel="second coordinate (m)", aspect="equal")
    left.set_title("A track by ranges, one sensor at a time", color=INK, fontsize=12, loc="left")
    left.legend(fontsize=9, loc="best")
    reports = np.arange(1, len(ours) + 1)
    for label, (found, colour) in rivals.items():
        right.plot(reports, distances(found, truth), color=colour, linewidth=1, label=label)
    right.plot(reports, distances(ours, truth), color=OURS, linewidth=1.3, label="pfbr, 256 particles")
    right.axhline(0.5, color=TRUTH, linewidth=1, linestyle="--")
    right.text(60, 0.54, "wrong above", color=TRUTH, va="bottom", fontsize=10)
    right.set(xlabel="reports", ylabel="error of the mean (posterior sd)")
    right.set(yscale="log", xlim=(1, len(ours)), ylim=(5e-3, 1.0))
    right.set_title("How far the mean is off", color=INK, fontsize=12, loc="left")
    right.legend(fontsize=9, loc="best")
    return figure
