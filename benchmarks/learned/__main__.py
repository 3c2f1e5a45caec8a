"""Train the general map, measure it on kinds of likelihoods that it never saw, or go on from it on single models.

python -m benchmarks.learned train --directory problems --out general.pfbr
python -m benchmarks.learned table --kinds testing --seed 5000
python -m benchmarks.learned fits --seed 5000
"""

import argparse
import dataclasses
import time


def train(args):
    from pfbr.inference.adaptive.general import write
    from pfbr.training.general.learn import learn
    from pfbr.training.general.recipe import Recipe

    recipe = dataclasses.replace(Recipe(), minutes=args.minutes, seed=args.seed)
    tell = lambda text: print(text, flush=True)
    learned = learn(recipe, args.directory, resume=args.resume, tell=tell)
    write(args.out, learned.transport, learned.document)
    print(f"{args.out}: {time.process_time():.0f} CPU seconds in all")


def table(args):
    if args.kinds == "testing":
        from benchmarks.learned.testing import KINDS
    elif args.kinds == "development":
        from benchmarks.learned.development import KINDS
    else:
        from pfbr.training.problems.kinds import KINDS
    from benchmarks.learned import table as measured
    from pfbr.inference.adaptive.general import read, shipped

    numbers = lambda text: tuple(int(word) for word in text.split(","))
    rows = measured.table(
        KINDS,
        shipped() if args.map is None else read(args.map)[0],
        dims=numbers(args.dims),
        particles=numbers(args.particles),
        problems=args.problems,
        seed=args.seed,
        out=args.out,
    )
    print(measured.summary(rows))
    print(f"{time.process_time():.0f} CPU seconds in all")


def fits(args):
    from benchmarks.learned.fits import MODELS, compare

    compare(args.models or MODELS, seed=args.seed, out=args.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.add_argument("--minutes", type=float, default=14.0)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--directory", required=True, help="for problems and the checkpoint")
    one.add_argument("--resume", action="store_true")
    one.add_argument("--out", required=True)
    one.set_defaults(run=train)
    other = commands.add_parser("table")
    other.add_argument("--map", help="a file that `train` wrote; without it, the map that comes with the package")
    other.add_argument("--kinds", choices=("training", "development", "testing"), default="development")
    other.add_argument("--dims", default="2,5,10,20")
    other.add_argument("--particles", default="256,1024")
    other.add_argument("--problems", type=int, default=12)
    other.add_argument("--seed", type=int, default=100)
    other.add_argument("--out")
    other.set_defaults(run=table)
    third = commands.add_parser("fits")
    third.add_argument("models", nargs="*", help="mixture, poisson-4, volatility-4, ranges; all where none is named")
    third.add_argument("--seed", type=int, default=100)
    third.add_argument("--out")
    third.set_defaults(run=fits)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
