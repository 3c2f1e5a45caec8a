"""A calibration's page in a real browser: few or many coordinates, trusted or not, wide or narrow, light or dark."""

import dataclasses
import html
import re

import numpy as np
import pytest

from pfbr.judging.calibration.calibrate import Calibration, CalibrationSettings, conclude
from pfbr.reporting.calibration_page import calibration_page

TEXT = "return document.querySelector('{}').textContent"


@pytest.fixture(scope="module", params=["trusted, 1", "refused, 10", "broken, 2"])
def drawn(request, tmp_path_factory):
    """Records of ranks made up for the purpose, and their page."""
    kind, dim = request.param.split(", ")
    ranks = np.random.default_rng(1).uniform(size=(200, 25, int(dim) + 1))
    whole = np.ones((200, 25), bool)
    if kind == "refused":
        ranks[:, 12:, 3] = 0.5 + 0.6 * (ranks[:, 12:, 3] - 0.5)
    if kind == "broken":
        whole[7, 20:] = False
    record = conclude(ranks, whole, CalibrationSettings())
    assert record.trusted == (kind == "trusted")
    spec = f"my_very_long_module_name.py:a_model_with_{dim}_unknowns"
    described = {"model": "Mine", "method": "a_file_of_mine.pfbr", "spec": spec, "seed": 3, "order_gap": 0.01}
    directory = tmp_path_factory.mktemp("calibration")
    dataclasses.replace(record, settings=record.settings | described | {"noise_gap": 0.02}).save(directory)
    return Calibration.load(directory), calibration_page(directory), spec


@pytest.mark.browser
def test_it_opens_alone_says_its_sentence_and_draws(chromium, drawn):
    record, path, spec = drawn
    chromium.open(path)
    assert [url for url in chromium.requests() if not url.startswith("data:")] == [path.as_uri()]
    assert chromium.console() == []
    assert chromium.run(TEXT.format(".findings li")) == record.verdict
    assert chromium.run("return document.querySelector('.findings li').className") == ("bad", "good")[record.trusted]
    assert chromium.run(TEXT.format("h1")) == f"Calibration: a_file_of_mine.pfbr on {spec}"
    sizes = chromium.run(
        "return [...document.querySelectorAll('.plot svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert len(sizes) == 3
    assert min(sizes) > 300
    shown = min(6, record.arrays["coverage"].shape[2]) + 1  # coordinates that fit, and the likelihood
    assert chromium.run("return document.querySelectorAll('#part-0 path.series').length") == shown + 1  # and the line
    worst = int(record.arrays["p_values"].min(axis=1).argmin()) + 1
    assert chromium.run("return document.querySelector('#part-1').dataset.chosen") == str(worst)
    before = chromium.run(TEXT.format("#part-1 text.name"))
    chromium.run("document.querySelector('#part-1 .buttons button').click()")
    assert (before, chromium.run(TEXT.format("#part-1 text.name"))) == (
        f"rank, after observation {worst}",
        "rank, after observation 1",
    )
    assert chromium.console() == []


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_nothing_is_clipped_or_pushed_off_the_screen(chromium, drawn, width, dark):
    chromium.open(drawn[1], width=width, dark=dark)
    assert chromium.run("return document.documentElement.scrollWidth") == width
    assert chromium.clipped() == []
    paper = chromium.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(17, 19, 23)" if dark else "rgb(251, 251, 249)")


def test_it_is_one_small_file_that_names_no_host(drawn):
    text = drawn[1].read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    assert html.escape(drawn[0].verdict) in text
    assert set(re.findall(r"https?://[^\"'\s]+", text)) <= {"http://www.w3.org/2000/svg"}  # a name, not an address
