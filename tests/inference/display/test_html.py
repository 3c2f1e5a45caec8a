"""What a notebook shows: right numbers, a picture in every line, nothing of a user's text as markup."""

import html.parser

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.display.columns import Column
from pfbr.inference.display.html import MOST_ROWS, forecast_html, posterior_html
from pfbr.inference.display.svg import Picture, density, fan
from pfbr.inference.forecast import Drawn, Forecast
from pfbr.inference.info import Info
from pfbr.inference.posterior import Posterior, Trace
from pfbr.models import GaussianMean
from pfbr.particles.particles import equally_weighted

EVIL = "<svg onload=alert(1)>&\"'"
EVEN = np.full(101, 1 / 101)
LINE = np.linspace(-1.0, 1.0, 101)


class Reader(html.parser.HTMLParser):
    """Tags that are open, all tags there were, and the text of every cell."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.tags, self.cells = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.cells += [""] if tag in ("td", "th") else []
        if tag not in ("br", "rect", "polygon", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "polygon", "polyline"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open) and "svg" not in self.open:
            self.cells[-1] += data


def posterior(dim: int = 2) -> Posterior:
    points = jnp.tile(jnp.asarray(LINE)[:, None], (1, dim)) + jnp.arange(dim)
    told = Info(ess=jnp.asarray(41.0), log_evidence=jnp.asarray(-3.25), flagged=jnp.asarray(True))
    return Posterior(equally_weighted(points), told)


def test_a_posterior_shows_each_number_with_its_interval_and_density():
    shown = posterior()._repr_html_()
    read = Reader(shown)
    assert read.open == [], "every tag is closed"
    assert read.tags.count("svg") == 2
    assert "effective sample size 41" in shown
    assert "log evidence -3.25" in shown
    assert "flagged" in shown
    rows = [cell for cell in read.cells if cell]
    assert rows[4:9] == ["x[0]", "0.000", f"{LINE.std(ddof=1):.3f}", "-0.909", "0.909"]
    assert rows[9:11] == ["x[1]", "1.000"]


def test_text_is_never_markup():
    shown = posterior_html(EVIL, [EVIL], [Column(EVIL, LINE, EVEN)])
    read = Reader(shown)
    assert "onload" not in shown.replace("&lt;svg onload=alert(1)&gt;", "")
    assert EVIL in read.cells
    assert read.tags.count("svg") == 1, "the picture, and no other"
    shown = forecast_html(EVIL, [], [Column(EVIL, LINE[None], EVEN[None])], np.array([1.0]))
    assert Reader(shown).tags.count("svg") == 1


def test_long_tables_are_cut_and_say_so():
    read = Reader(posterior(MOST_ROWS + 5)._repr_html_())
    assert read.tags.count("tr") == 1 + MOST_ROWS + 1
    assert read.cells[-1] == "… and 5 more"


def test_a_trace_shows_its_last_posterior_and_the_way_there():
    points = jnp.asarray(LINE)[None, :, None] + jnp.arange(4.0)[:, None, None]
    cloud = jax.vmap(equally_weighted)(points)
    read = Reader(Trace(cloud, Info())._repr_html_())
    assert read.tags.count("svg") == 1
    assert [cell for cell in read.cells if cell][6:8] == ["x", "3.000"]
    assert "4 posteriors of 1 unknown<" in Trace(cloud, Info())._repr_html_()


def test_many_streams_show_as_text():
    points = jnp.zeros((2, 4, 101, 1))
    assert Trace(jax.vmap(jax.vmap(equally_weighted))(points), Info())._repr_html_() is None


def test_a_forecast_shows_a_line_for_each_time():
    drawn = Drawn(jnp.zeros((3, 101, 2)), jnp.asarray(LINE)[None, :, None] + jnp.arange(3.0)[:, None, None])
    shown = Forecast(
        np.array(["2024-05-01", "2024-05-02", "2024-05-03"], "M8[D]"), drawn, GaussianMean(2)
    )._repr_html_()
    read = Reader(shown)
    cells = [cell for cell in read.cells if cell]
    assert "Forecast of observations" in shown
    assert "y (-0.909 to 2.91)" in shown, "the picture has no axis"
    assert cells[5:8] == ["2024-05-01", "y", "0.000"]
    assert cells[17:20] == ["2024-05-03", "y", "2.000"]


@pytest.mark.parametrize("values", [np.full(101, 2.0), np.full(101, np.nan)])
def test_what_has_no_shape_has_no_picture(values):
    assert density(Column("x", values, EVEN)) == Picture()


def test_a_density_fills_its_picture_and_a_steady_median_stands_in_the_middle():
    drawn = density(Column("x", LINE, EVEN))
    heights = [float(pair.split(",")[1]) for pair in drawn.split('points="')[1].split('"')[0].split()]
    assert (min(heights), max(heights)) == (2.0, 25.0)
    path = fan(Column("x", LINE[None] + np.zeros((5, 1)), np.tile(EVEN, (5, 1))), np.arange(5))
    assert path.count(",13.0") == 5
