"""Train the operator for any static model with two unknowns, on random curves and priors (`families.TRAINING`).

python benchmarks/train_static_2d.py --minutes 14 --out src/pfbr/inference/pretrained/static-2d.pfbr
"""

import argparse

import jax

import pfbr
from pfbr.training.families import TRAINING


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=14.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    family = TRAINING["waves"]
    settings = pfbr.TrainingSettings(minutes=args.minutes, batch=16, length=14, validation_tasks=32, validate_every=500)
    example = family.sample(jax.random.key(0), 1).model  # of the right shapes; its numbers are drawn anew for each task
    operator, report = pfbr.fit(
        example,
        key=args.seed,
        objective="continuity",
        family=family,
        settings=settings,
        architecture={"steps": 16},
    )
    pfbr.save(args.out, operator)
    for entry in report.history:
        print(entry)


if __name__ == "__main__":
    main()
