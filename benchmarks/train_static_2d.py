"""Train the operator for any model at rest in the plane, on random curves and priors (`families.TRAINING`).

python benchmarks/train_plane.py --minutes 14 --out src/pfbr/shipped/plane.pfbr
"""

import argparse

import jax

import pfbr
from pfbr.inference.ood import learn_reference_statistics, remember
from pfbr.training.families import TRAINING


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=14.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    family = TRAINING["waves"]
    settings = pfbr.TrainingSettings(
        minutes=args.minutes, batch=16, length=14, validation_tasks=32, validate_every=500, objective="continuity"
    )
    example = family.sample(jax.random.key(0), 1).model  # of the right shapes; its numbers are drawn anew for each task
    operator, history = pfbr.fit(
        jax.random.key(args.seed), example, family=family, settings=settings, architecture={"steps": 16}
    )
    operator = remember(
        operator, learn_reference_statistics(jax.random.key(args.seed + 1), operator, family, length=14, streams=64)
    )
    pfbr.save(args.out, operator)
    for entry in history:
        print(entry)


if __name__ == "__main__":
    main()
