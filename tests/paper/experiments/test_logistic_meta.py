"""The rotated digits from command to page, at a tiny size."""

import dataclasses
import json

import pytest

from pfbr.paper.contract import Run
from pfbr.paper.digits import scoring
from pfbr.paper.experiments.logistic_meta import BASELINES
from pfbr.paper.registry import find, perform

META = find("logistic-meta")
METHODS = ("pfbr-meta", "pfbr-gaussian", *BASELINES)


@pytest.mark.slow
def test_a_whole_run_of_the_rotated_digits_at_a_tiny_size(tmp_path):
    """Trained again for a few steps, every rival, killed and resumed records: the first prediction is at chance."""
    small = dataclasses.replace(META.quick, num_tasks=2, num_stages=4, bad_starts=2, bad_starts_among=10)
    experiment = dataclasses.replace(META, quick=small)
    page = perform(Run(experiment, tmp_path, quick=True))
    assert page.is_file()
    lines = [json.loads(line) for line in (tmp_path / "records/online/measurements.jsonl").read_text().splitlines()]
    first = {m["method"]: m["value"] for m in lines if m["metric"] == scoring.SCORE and m["stage"] == 0}
    assert first.keys() == set(METHODS)
    assert all(0.5 < value < 0.9 for value in first.values())  # −log ½ = 0.69, whatever the first particles say
    after = {m["method"]: m["value"] for m in lines if m["metric"] == scoring.FRESH_SCORE and m["stage"] == 1}
    assert min(after, key=after.__getitem__) == "pfbr-meta"
    before = (tmp_path / "records/online/measurements.jsonl").read_bytes()
    perform(Run(experiment, tmp_path, quick=True))  # nothing is measured twice
    assert (tmp_path / "records/online/measurements.jsonl").read_bytes() == before
