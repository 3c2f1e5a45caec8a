"""Make and keep the truth of streams that have none yet, in `truth/`.

python -m benchmarks.streams.make_truth bearings-much --seed 5000 --streams 25
"""

import argparse

from benchmarks.streams.catalogue import PROBLEMS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=PROBLEMS, metavar="NAMES", help=", ".join(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=25)
    args = parser.parse_args()
    for name in args.names:
        for seed in range(args.seed, args.seed + args.streams):
            truth = PROBLEMS[name].truth(seed)
            said = "the state itself" if truth is None else f"error {truth.error:.3f} sd, {truth.seconds:.1f} CPU s"
            print(f"{name} {seed}: {said}", flush=True)


if __name__ == "__main__":
    main()
