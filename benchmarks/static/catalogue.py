"""Problems by name: PROBLEMS[name](seed). Seeds below 5000 are to develop with, 5000 and above to test."""

from collections.abc import Callable
from functools import partial

from benchmarks.static import linear, mixture, plane, predator, process, student
from benchmarks.static.hierarchical import hierarchical
from benchmarks.static.problem import Problem
from benchmarks.static.regression import ROWS, regression

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "yearly-3": linear.yearly,
    "longley-8": linear.longley,
    "sunspots-ar5": linear.sunspots,
    "diabetes-8": linear.diabetes,
    "diabetes-26": linear.diabetes_wide,
    **{f"{kind}-{dim}": partial(regression, kind, dim) for kind in ("logistic", "binomial", "poisson") for dim in ROWS},
    "student-3": student.student_line,
    **{f"hierarchical-centred-{groups}": partial(hierarchical, groups, True) for groups in (8, 30)},
    **{f"hierarchical-noncentred-{groups}": partial(hierarchical, groups, False) for groups in (8, 30)},
    "mixture-5": mixture.ordered_mixture,
    "predator-8": predator.predator_prey,
    "process-13": process.process_with_counts,
    "range-2": plane.range_only,
    "banana-2": plane.banana,
    "ring-2": plane.ring,
    "two-modes-2": plane.two_modes,
}
