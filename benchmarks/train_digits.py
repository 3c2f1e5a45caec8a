"""Train the operators for rotated digits that come with the package, on what `pfbr data mnist8m` made.

pfbr data mnist8m --out mnist8m
python benchmarks/train_digits.py --data mnist8m --out src/pfbr/paper/operators/digits.pfbr
python benchmarks/train_digits.py --data mnist8m --zeroed --steps 200 --out src/pfbr/paper/operators/digits-zeroed.pfbr
"""

import argparse
import resource
from pathlib import Path

import pfbr
from pfbr.paper.digits import open_stream
from pfbr.paper.digits.methods import recipe
from pfbr.paper.digits.tasks import stores


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the directory of the prepared stream; without it, embedded images alone")
    parser.add_argument("--out", required=True, type=Path, help="the operator's file")
    parser.add_argument("--steps", type=int, default=recipe("digits").steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="informed", choices=("informed", "paper"))
    parser.add_argument("--objective", default="prequential", choices=("prequential", "elbo"))
    parser.add_argument("--zeroed", action="store_true", help="set the first two features to zero")
    given = parser.parse_args()
    both = stores(None if given.data is None else open_stream(given.data), zeroed=given.zeroed)
    print(f"{len(both[0].labels):,} images to train on, {len(both[1].labels):,} to validate on", flush=True)
    changes = {} if given.objective == "prequential" else {"segments": 1}
    how = {"kind": given.kind, "objective": given.objective, "steps": given.steps, "seed": given.seed}
    recipe(given.out.stem, **how, **changes).train(both[0].model, given.out, families=lambda: both, progress=True)
    made = pfbr.read_header(given.out)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    score = made["validation_score"]
    print(f"{made['steps']} steps, {made['seconds']} s, validation {score:.4f}, {peak:.2f} GB of memory")


if __name__ == "__main__":
    main()
