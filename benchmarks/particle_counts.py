"""One operator, 16 … 16384 particles: its score beside that of as many exact draws.

python benchmarks/particle_counts.py linear-dynamics-2 --operator gaussian --out results.jsonl
"""

import argparse
import json

from scores import CASES, score

import pfbr

COUNTS = (16, 64, 256, 1024, 4096, 16384)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--operator", default="gaussian", help="gaussian, or a file")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--out")
    args = parser.parse_args()
    make, at, length, _ = CASES[args.case]
    operator = pfbr.gaussian_operator() if args.operator == "gaussian" else pfbr.load(args.operator)
    for count in map(int, args.counts.split(",")):
        scores = score(operator, make(), at, length, num_particles=count, num_streams=10, num_draws=1000)
        line = {
            "case": args.case,
            "operator": args.operator,
            "particles": count,
            "exact": round(float(scores["exact"].mean()), 4),
            "ours": round(float(scores["ours"].mean()), 4),
            "above exact at the first stage": round(float((scores["ours"] - scores["exact"])[:, 0].mean()), 4),
            "above exact at the last stage": round(float((scores["ours"] - scores["exact"])[:, -1].mean()), 4),
        }
        print(json.dumps(line), flush=True)
        if args.out:
            with open(args.out, "a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
