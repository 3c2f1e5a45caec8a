"""The page of the rotated digits says who is ahead, from records alone."""

import numpy as np

from pfbr.io.records import Measurement
from pfbr.judging.evaluate import SECONDS
from pfbr.paper.contract import Results, Run
from pfbr.paper.digits.scoring import measurements
from pfbr.paper.registry import find
from pfbr.reporting.figures import draw_figure
from pfbr.reporting.html import write_page
from tests.paper.digits.predictions import predictions

META = find("logistic-meta")
METHODS = ("pfbr-meta", "pfbr-gaussian", "smc-one-pass", "svi", "sgld", "pmd", "npv", "ibis")


def meta_records(directory, probabilities: dict[str, float]) -> None:
    """Records as a run leaves them: every method predicts with its own probability after the first update."""
    run = Run(META, directory, quick=True)
    for case in ("online", "bad-starts", "undeformed", "zeroed"):
        records = run.case(case)
        for name in METHODS:
            said = predictions(np.array([0.5] + [probabilities.get(name, 0.6)] * 5))
            lines = measurements(name, said, run.settings.num_particles, 0)
            common = {"num_particles": run.settings.num_particles, "seed": 0}
            lines.append(Measurement(name, SECONDS, None, 0.01, **common))
            records.add(lines)
    run.tick()


def test_the_page_says_who_is_ahead(tmp_path):
    meta_records(tmp_path / "ahead", {"pfbr-meta": 0.9})
    page = META.view(Results(tmp_path / "ahead"))
    told = [f for f in page.findings if "log score" in f.text]
    assert any("ahead of every other method" in f.text and f.good for f in told)
    assert write_page(tmp_path / "index.html", page).stat().st_size > 10_000
    assert all(path.is_file() for path in draw_figure(tmp_path, "meta", page.figures["meta"]))


def test_the_page_says_who_is_not_behind(tmp_path):
    meta_records(tmp_path, {"pfbr-meta": 0.8, "svi": 0.85})
    told = [f for f in META.view(Results(tmp_path)).findings if f.text.startswith("Prequential log score")]
    assert [f.good for f in told] == [False]
    assert "streaming SVI" in told[0].text
    assert "SGLD" not in told[0].text
