"""Train the operators for rotated digits that come with the package, on what `pfbr data mnist8m` made.

pfbr data mnist8m --out mnist8m
python benchmarks/train_digits.py --data mnist8m --out src/pfbr/shipped/digits.pfbr
python benchmarks/train_digits.py --data mnist8m --zeroed --steps 200 --out src/pfbr/shipped/digits-zeroed.pfbr
"""

import argparse
import json
import resource

import pfbr
from pfbr.paper.digit_methods import FULL_STEPS, train, training_settings
from pfbr.paper.digit_tasks import stores
from pfbr.paper.digits import open_stream

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", help="the directory of the prepared stream; without it, embedded images alone")
parser.add_argument("--out", required=True, help="the operator's file")
parser.add_argument("--steps", type=int, default=FULL_STEPS)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--kind", default="informed", choices=("informed", "paper"))
parser.add_argument("--objective", default="predictive", choices=("predictive", "elbo"))
parser.add_argument("--zeroed", action="store_true", help="set the first two features to zero")
given = parser.parse_args()

stream = None if given.data is None else open_stream(given.data)
both = stores(stream, zeroed=given.zeroed)
print(f"{len(both[0].labels):,} images to train on, {len(both[1].labels):,} to validate on", flush=True)
changes = {} if given.objective == "predictive" else {"segments": 1}
settings = training_settings(given.steps, objective=given.objective, **changes)
operator = train(given.seed, both, settings, kind=given.kind)
pfbr.save(given.out, operator)
made = json.loads(operator.provenance)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"{made['steps']} steps, {made['seconds']} s, validation {made['validation_score']:.4f}, {peak:.2f} GB of memory")
