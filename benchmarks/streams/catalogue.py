"""Problems by name. Seeds 1000–1099 are to develop with, 5000 and above to test."""

from benchmarks.streams import linear, lorenz, rotated, scalar, tracking
from benchmarks.streams.problem import Problem

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        *tracking.PROBLEMS,
        *linear.PROBLEMS,
        *scalar.PROBLEMS,
        *rotated.PROBLEMS,
        *lorenz.PROBLEMS,
    )
}
