"""The experiments with digits: what is measured, what is told of it, and whole runs at a tiny size."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.baselines import OnePassSMC, Prior
from pfbr.io.records import Measurement
from pfbr.paper import digit_judging as judging
from pfbr.paper.contract import Results, Run
from pfbr.paper.digit_judging import Judged, choose, judge, measurements, worst_starts
from pfbr.paper.digit_methods import CHOSEN, rival_candidates, training_settings
from pfbr.paper.digits.rotations import RotatedDigits
from pfbr.paper.logistic_meta import META
from pfbr.paper.logistic_vi import VI
from pfbr.paper.logistic_vi_view import TEST_ACCURACY, TEST_SCORE
from pfbr.paper.registry import draw, perform

METHODS = ("pfbr-meta", "pfbr-gaussian", "smc-one-pass", "svi", "sgld", "pmd", "npv", "ibis")


def judged(probability: np.ndarray) -> Judged:
    """Two tasks; `probability` (T,) is given to every label of a batch of four."""
    foretold = np.log(np.broadcast_to(probability[None, :, None], (2, len(probability), 4)))
    labels = np.broadcast_to(np.array([0.0, 1.0, 0.0, 1.0]), foretold.shape)
    fresh = np.stack([np.broadcast_to(p, (2, len(probability))) for p in (probability, -np.log(probability))], axis=-1)
    return Judged(foretold, labels, fresh)


def found(lines: list[Measurement], metric: str, stage: int | None) -> float:
    (one,) = (m.value for m in lines if m.metric == metric and m.stage == stage)
    return one


def test_averages_begin_after_the_first_update():
    lines = measurements("svi", judged(np.array([0.4, 0.6, 0.4, 0.9])), 16, 0)
    assert [found(lines, judging.ACCURACY, stage) for stage in range(4)] == [0.0, 1.0, 0.5, 2 / 3]
    assert np.isclose(found(lines, judging.SCORE, 2), -(np.log(0.6) + np.log(0.4)) / 2)
    assert found(lines, judging.BATCH_ACCURACY, 2) == 0.0
    assert np.isclose(found(lines, judging.SCORE, None), -np.log([0.6, 0.4, 0.9]).mean())
    assert found(lines, judging.FRESH_ACCURACY, 3) == 0.9
    assert found(lines, judging.DEVIATION, 3) == 0.0


def test_calibration_counts_what_was_called_an_eight():
    """Half the labels are eights. Given 0.9 to every label, eights are called 0.9 and sixes 0.1, and all are right."""
    lines = measurements("svi", judged(np.array([0.5, 0.95])), 16, 0)
    assert found(lines, judging.COUNT, 9) == 4
    assert found(lines, judging.COUNT, 0) == 4
    assert np.isclose(found(lines, judging.FORETOLD, 9), 0.95)
    assert found(lines, judging.OBSERVED, 9) == 1.0
    assert found(lines, judging.OBSERVED, 0) == 0.0
    assert np.isclose(found(lines, judging.CALIBRATION_ERROR, None), 0.05)


@pytest.fixture(scope="module")
def store() -> RotatedDigits:
    features = jax.random.normal(jax.random.key(3), (60, 2))
    return RotatedDigits(features, (features[:, 0] > 0).astype(float), batch=8)


@pytest.fixture(scope="module")
def streams(store):
    return jnp.stack([store.sample(k, 4).observations for k in jax.random.split(jax.random.key(0), 3)])


def test_the_best_setting_wins_on_the_tuning_streams(store, streams):
    keys = jax.random.split(jax.random.key(1), 3)
    best, scores = choose(keys, [Prior(), OnePassSMC(bandwidth=0.5)], store.model, streams, 64)
    assert best == 1
    assert scores[1] < scores[0]


def test_bad_starts_are_the_worst_of_all_and_reach_the_method(store, streams):
    keys = jax.random.split(jax.random.key(2), 40)
    method = Prior()
    chosen, accuracy = worst_starts(keys, method, store.model, streams[0], 3, 16)
    everyone = judge(
        keys, method, store.model, jnp.repeat(streams[:1], 40, axis=0), jnp.repeat(streams[:1, 0], 40, axis=0), 16
    )
    first = np.mean(everyone.foretold[:, 0] > np.log(0.5), axis=1)
    assert np.allclose(accuracy, np.sort(first)[:3])
    assert chosen.shape == (3,)


def meta_records(directory, probabilities: dict[str, float]) -> None:
    """Records as a run leaves them: every method foretells with its own probability after the first update."""
    run = Run(META, directory, quick=True)
    for case in ("online", "bad-starts", "undeformed", "zeroed"):
        records = run.case(case)
        for name in METHODS:
            said = judged(np.array([0.5] + [probabilities.get(name, 0.6)] * 5))
            lines = measurements(name, said, run.settings.num_particles, 0)
            common = {"num_particles": run.settings.num_particles, "seed": 0}
            lines.append(Measurement(name, judging.SECONDS, None, 0.01, **common))
            records.add(lines)
    run.tick()


def test_the_page_says_who_is_ahead(tmp_path):
    meta_records(tmp_path / "ahead", {"pfbr-meta": 0.9})
    page = draw(tmp_path / "ahead")
    told = META.view(Results(tmp_path / "ahead")).findings
    assert any("ahead of every other method" in f.text and f.good for f in told if "log score" in f.text)
    assert page.stat().st_size > 10_000
    assert (tmp_path / "ahead" / "meta.png").is_file()


def test_the_page_says_who_is_not_behind(tmp_path):
    meta_records(tmp_path, {"pfbr-meta": 0.8, "svi": 0.85})
    told = [f for f in META.view(Results(tmp_path)).findings if f.text.startswith("Average online log score")]
    assert [f.good for f in told] == [False]
    assert "streaming SVI" in told[0].text
    assert "SGLD" not in told[0].text


def test_the_page_of_variational_inference_measures_the_distance_to_the_reference(tmp_path):
    run = Run(VI, tmp_path, quick=True)
    records, n = run.case("vi", images=1000), run.settings.num_particles
    for name, accuracy in (("pfbr", 0.986), ("svi", 0.97), ("truth", 0.984)):
        for visited in (1280, 2560):
            records.add(
                Measurement(name, m, visited, v, None, n) for m, v in ((TEST_ACCURACY, accuracy), (TEST_SCORE, 0.1))
            )
    told = VI.view(Results(tmp_path)).findings
    assert "+0.20 points" in told[0].text
    assert told[0].good
    assert draw(tmp_path).is_file()


def test_every_remembered_choice_exists():
    candidates = rival_candidates(4, 32)
    assert candidates.keys() == CHOSEN.keys()
    assert all(CHOSEN[name] < len(candidates[name]) for name in candidates)
    assert training_settings(5).objective == "predictive"


@pytest.mark.slow
def test_a_whole_run_of_the_rotated_digits_at_a_tiny_size(tmp_path):
    """Trained again for a few steps, every rival, killed and resumed records: the first prediction is at chance."""
    small = dataclasses.replace(META.quick, num_tasks=2, num_stages=4, bad_starts=2, bad_starts_among=10)
    experiment = dataclasses.replace(META, quick=small)
    page = perform(Run(experiment, tmp_path, quick=True))
    assert page.is_file()
    lines = [json.loads(line) for line in (tmp_path / "records/online/measurements.jsonl").read_text().splitlines()]
    first = {m["method"]: m["value"] for m in lines if m["metric"] == judging.SCORE and m["stage"] == 0}
    assert first.keys() == set(METHODS)
    assert all(0.5 < value < 0.9 for value in first.values())  # −log ½ = 0.69, whatever the first particles say
    after = {m["method"]: m["value"] for m in lines if m["metric"] == judging.FRESH_SCORE and m["stage"] == 1}
    assert min(after, key=after.__getitem__) == "pfbr-meta"
    before = (tmp_path / "records/online/measurements.jsonl").read_bytes()
    perform(Run(experiment, tmp_path, quick=True))  # nothing is measured twice
    assert (tmp_path / "records/online/measurements.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_whole_run_of_variational_inference_at_a_tiny_size(tmp_path):
    small = dataclasses.replace(VI.quick, training_steps=3, rival_batches=3, nuts_images=256)
    page = perform(Run(dataclasses.replace(VI, quick=small), tmp_path, quick=True))
    assert page.is_file()
    lines = [json.loads(line) for line in (tmp_path / "records/vi/measurements.jsonl").read_text().splitlines()]
    accuracy = {m["method"]: m["value"] for m in lines if m["metric"] == TEST_ACCURACY}
    assert accuracy.keys() == {"pfbr", "svi", "sgld", "pmd", "npv", "truth"}
    assert accuracy["truth"] > 0.9
