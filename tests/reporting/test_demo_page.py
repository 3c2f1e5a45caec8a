"""The page in a real browser: opens from disk without a network, complains of nothing, moves when told to."""

import re
import time

import pytest

from pfbr.judging.demo import two_modes
from pfbr.judging.demo.record import DemoRecord

browser = pytest.mark.browser

STAGE = "return Number(document.documentElement.dataset.stage)"
PLACES = "return [...document.querySelectorAll('[data-panel={}] .particle')].map(c => c.style.cx + c.style.cy).join()"
SET_STAGE = "const s = document.getElementById('stage'); s.value = {}; s.dispatchEvent(new Event('input'))"


@pytest.fixture
def page(chromium, demo_directory):
    chromium.open(demo_directory / "index.html")
    return chromium


def wait_until(page, script: str, *, seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not page.run(script):
        assert time.monotonic() < ends, f"never became true: {script}"
        time.sleep(0.05)


@browser
def test_it_opens_from_disk_alone_and_without_a_complaint(page, demo_directory):
    asked = page.requests()
    assert [url for url in asked if not url.startswith("data:")] == [(demo_directory / "index.html").as_uri()]
    assert page.console() == []
    assert page.run(STAGE) == 6  # opens at the end of the stream
    assert page.run("return document.querySelectorAll('[data-panel=pfbr] .particle').length") == 64


def test_it_is_one_small_file_that_names_no_host(demo_directory):
    text = (demo_directory / "index.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 3_000_000
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    assert set(re.findall(r"https?://[^\"'\s]+", text)) <= {"http://www.w3.org/2000/svg"}  # a name, not an address


@browser
def test_the_slider_changes_every_picture(page):
    def seen():
        script = "return document.querySelector('{}').{}"
        return {
            "pfbr": page.run(PLACES.format("pfbr")),
            "smc": page.run(PLACES.format("smc")),
            "heat": page.run(script.format("[data-panel=truth] image", "getAttribute('href')")),
            "contours": page.run(script.format("[data-panel=smc] .contour", "getAttribute('d')")),
            "score": page.run(script.format("[data-chart=score] .cursor", "getAttribute('x1')")),
            "mass": page.run(script.format("[data-chart=mass] .cursor", "getAttribute('x1')")),
            "label": page.run(script.format("#stage-label", "textContent")),
            "tiles": page.run(script.format("#tiles", "textContent")),
        }

    page.run(SET_STAGE.format(2))
    early = seen()
    page.run(SET_STAGE.format(5))
    late = seen()
    assert [name for name in early if early[name] == late[name]] == []
    assert late["label"] == "observation 5 of 6"
    page.run(SET_STAGE.format(2))
    assert seen() == early
    assert page.run("return document.querySelectorAll('[data-chart=observations] circle[r=\"6\"]').length") == 1


@browser
def test_keys_step_and_stop_at_the_ends(page):
    for key, expected in [
        ("Home", 0),
        ("ArrowLeft", 0),
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("End", 6),
        ("ArrowRight", 6),
    ]:
        page.press(key)
        assert page.run(STAGE) == expected


@browser
def test_play_advances_pauses_and_ends(page):
    page.press("Home")
    page.run("document.getElementById('play').click()")
    assert page.run("return document.getElementById('play').getAttribute('aria-label')") == "Pause"
    wait_until(page, "return document.documentElement.dataset.stage >= 2")
    page.run("document.getElementById('play').click()")
    stopped = page.run(STAGE)
    time.sleep(1.5)  # more than two steps of the animation
    assert page.run(STAGE) == stopped
    page.press(" ")
    wait_until(page, "return document.getElementById('play').getAttribute('aria-label') === 'Play'")
    assert page.run(STAGE) == 6


@browser
@pytest.mark.parametrize("width", [1200, 768, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_clipped_on_screens_of_any_size(chromium, demo_directory, width, dark):
    chromium.open(demo_directory / "index.html", width=width, dark=dark)
    assert chromium.run("return document.documentElement.scrollWidth") == width
    assert chromium.clipped() == []
    dark_paper = "return getComputedStyle(document.body).backgroundColor === 'rgb(17, 19, 23)'"
    assert chromium.run(dark_paper) is dark


@browser
def test_the_page_shows_the_numbers_of_the_records(page, demo_directory):
    arrays = DemoRecord.load(demo_directory, two_modes.NAME).arrays
    cells = page.run("return [...document.querySelectorAll('#table tr[data-stage=\"5\"] td')].map(c => c.textContent)")
    scores = [arrays[f"{name}_score"][5] for name in ("exact", "pfbr", "smc", "prior")]
    masses = [arrays[f"{name}_mass"][5] for name in ("truth", "pfbr", "smc")]
    shown = [float(cell.replace("−", "-")) for cell in cells]
    assert shown == pytest.approx([5, *scores, *masses], abs=0.006)
