"""Variational inference on the digits from command to page, at a tiny size."""

import dataclasses
import json

import pytest

from pfbr.paper.contract import Run
from pfbr.paper.experiments.logistic_vi import TEST_ACCURACY
from pfbr.paper.registry import find, perform

VI = find("logistic-vi")


@pytest.mark.slow
def test_a_whole_run_of_variational_inference_at_a_tiny_size(tmp_path):
    small = dataclasses.replace(VI.quick, training_steps=3, baseline_batches=3, nuts_images=256)
    page = perform(Run(dataclasses.replace(VI, quick=small), tmp_path, quick=True))
    assert page.is_file()
    lines = [json.loads(line) for line in (tmp_path / "records/vi/measurements.jsonl").read_text().splitlines()]
    accuracy = {m["method"]: m["value"] for m in lines if m["metric"] == TEST_ACCURACY}
    assert accuracy.keys() == {"pfbr", "pfbr-gaussian", "svi", "sgld", "pmd", "npv", "truth"}
    assert accuracy["truth"] > 0.9
