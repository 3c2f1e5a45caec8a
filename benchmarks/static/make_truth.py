"""Make and keep the truth of problems that have none yet, in `truth/`.

python -m benchmarks.static.make_truth student-3 poisson-10 --seed 5001
"""

import argparse

import jax

from benchmarks.static.catalogue import PROBLEMS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1000)
    args = parser.parse_args()
    for name in args.names or PROBLEMS:
        truth = PROBLEMS[name](args.seed).truth()
        print(
            f"{name} {args.seed}: rows {truth.stages.tolist()}, error {truth.error.round(3).tolist()} sd, "
            f"{truth.seconds:.1f} CPU s",
            flush=True,
        )
        jax.clear_caches()


if __name__ == "__main__":
    main()
