"""Train the general operator, or measure it on kinds of likelihoods that it never saw.

python -m benchmarks.learned train --minutes 14 --directory problems --out any.pfbr
python -m benchmarks.learned table --operator any.pfbr --kinds testing --seed 5000
"""

import argparse
import dataclasses
import time

import pfbr


def train(args):
    from pfbr.training.general.learn import learn
    from pfbr.training.general.recipe import Recipe

    recipe = dataclasses.replace(Recipe(), minutes=args.minutes, seed=args.seed)
    tell = lambda text: print(text, flush=True)
    operator = learn(recipe, args.directory, resume=args.resume, tell=tell)
    pfbr.save(args.out, operator)
    print(f"{args.out}: {time.process_time():.0f} CPU seconds in all")


def table(args):
    if args.kinds == "testing":
        from benchmarks.learned.testing import KINDS
    elif args.kinds == "development":
        from benchmarks.learned.development import KINDS
    else:
        from pfbr.training.problems.kinds import KINDS
    from benchmarks.learned import table as measured

    numbers = lambda text: tuple(int(word) for word in text.split(","))
    operator = pfbr.load(args.operator)
    rows = measured.table(
        KINDS,
        operator.velocity,
        dims=numbers(args.dims),
        particles=numbers(args.particles),
        problems=args.problems,
        seed=args.seed,
        steps=args.steps or operator.settings.steps,
        out=args.out,
    )
    print(measured.summary(rows))
    print(f"{time.process_time():.0f} CPU seconds in all")


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
    other.add_argument("--operator", required=True)
    other.add_argument("--kinds", choices=("training", "development", "testing"), default="development")
    other.add_argument("--dims", default="2,5,10,20")
    other.add_argument("--particles", default="256,1024")
    other.add_argument("--problems", type=int, default=12)
    other.add_argument("--seed", type=int, default=100)
    other.add_argument("--steps", type=int)
    other.add_argument("--out")
    other.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
