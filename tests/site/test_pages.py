"""The site as a reader sees it, page by page, on a desk and on a phone.

`make docs` builds it, or `PFBR_SITE` says where it is; skipped where it has not been built.
"""

import io
import os
import time
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

pytestmark = pytest.mark.browser
WIDTHS = (1200, 390)
# what is wider than the screen, other than inside something that scrolls by itself
STICKING_OUT = """
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  const sides = (e) => getComputedStyle(e).overflowX;
  const scrolls = (e) => e && (sides(e) !== 'visible' || scrolls(e.parentElement));
  return ['the page', ...[...document.querySelectorAll('.md-content *')]
    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement))
    .slice(0, 3).map((e) => e.tagName + ' ' + e.textContent.slice(0, 40))]"""
BROKEN_IMAGES = "return [...document.images].filter((i) => i.complete && i.naturalWidth === 0).map((i) => i.src)"
FOUND = "return [...document.querySelectorAll('.md-search-result__link')].map((a) => a.getAttribute('href'))"


@pytest.fixture(scope="module")
def site(root) -> Path:
    place = Path(os.environ.get("PFBR_SITE", root / "site"))
    if not (place / "index.html").exists():
        pytest.skip("the site has not been built: `make docs`")
    return place


@pytest.fixture(scope="module")
def pages(site) -> list[Path]:
    return sorted(page for page in site.rglob("*.html") if page.name != "404.html")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_complains_sticks_out_or_lacks_a_picture(chromium, site, pages, width):
    wrong = {}
    for page in pages:
        chromium.open(page, width=width)
        found = [*chromium.console(), *chromium.run(STICKING_OUT), *chromium.run(BROKEN_IMAGES)]
        if found:
            wrong[str(page.relative_to(site))] = found
    assert wrong == {}
    assert len(pages) > 30


def test_nothing_is_fetched_from_elsewhere(chromium, site):
    for name in ("index.html", "get-started.html", "reference/sessions.html"):
        chromium.open(site / name)
        assert [
            address for address in chromium.requests() if not address.startswith(("file:", "data:", "about:"))
        ] == []


@pytest.mark.parametrize(("words", "page"), [("missing values", "missing-values"), ("forecast", "forecasts")])
def test_search_finds_the_page_that_is_meant(chromium, site, words, page):
    chromium.open(site / "index.html")
    chromium.run("document.querySelector('.md-search__input').focus()")
    chromium.devtools("Input.insertText", {"text": words})
    found: list[str] = []
    for _ in range(200):  # the index is read in the background
        chromium.press("Shift")  # the page looks for what is written whenever a key comes up
        found = chromium.run(FOUND)
        if found:
            break
        time.sleep(0.1)
    assert any(page in link for link in found[:5]), found


def test_dark_is_dark_and_light_is_light(chromium, site):
    for dark in (False, True):
        chromium.open(site / "get-started.html", dark=dark)
        chromium.run("localStorage.clear()")  # what a reader chose before
        chromium.open(site / "get-started.html", dark=dark)
        shade = chromium.run("return getComputedStyle(document.body).backgroundColor")
        bright = sum(map(float, shade.removeprefix("rgb").strip("a()").split(",")[:3])) > 380
        assert bright != dark, shade


@pytest.mark.parametrize("name", ["concepts/flow.html", "gallery/index.html", "digits.html"])
def test_no_figure_glares_in_the_dark(chromium, site, name):
    chromium.open(site / name, dark=True, height=1600)
    chromium.run("localStorage.clear()")
    chromium.open(site / name, dark=True, height=1600)
    shown = matplotlib.image.imread(io.BytesIO(chromium.screenshot()))[..., :3]
    assert np.mean(shown.min(axis=-1) > 0.9) < 0.06  # a figure on white fills a fifth of the page and more
