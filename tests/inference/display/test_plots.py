"""Figures draw the numbers that they are given, on our axes or the user's; without matplotlib they say what to do."""

import builtins
import importlib

import jax
import matplotlib.figure
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.forecast import Drawn, Forecast
from pfbr.inference.info import Info
from pfbr.inference.posterior import Posterior, Trace
from pfbr.models import GaussianMean
from pfbr.particles.particles import equally_weighted

LINE = jnp.linspace(-1.0, 1.0, 101)
POSTERIOR = Posterior(equally_weighted(jnp.stack([LINE, 5 + LINE], axis=1)), Info())


def trace(dim: int = 1) -> Trace:
    points = LINE[None, :, None] + jnp.arange(4.0)[:, None, None] + jnp.zeros(dim)
    return Trace(jax.vmap(equally_weighted)(points), Info())


def forecast(**changes) -> Forecast:
    drawn = Drawn(jnp.zeros((3, 101, 2)), LINE[None, :, None] + jnp.arange(3.0)[:, None, None])
    return Forecast(np.arange(5.0, 8.0), drawn, GaussianMean(2))


def lines(axis) -> list[list[float]]:
    return [np.asarray(line.get_ydata(), float).tolist() for line in axis.lines]


def test_a_posterior_has_a_density_for_each_number_and_a_line_for_the_truth():
    figure = POSTERIOR.plot(truth=[0.25, 5.5])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["x[0]", "x[1]"]
    assert [axis.lines[-1].get_xdata()[0] for axis in figure.axes] == [0.25, 5.5]
    at = figure.axes[0].collections[1].get_paths()[0].vertices[:, 0]  # the central 90 % of draws even in ±1
    assert (at.min(), at.max()) == pytest.approx((-0.9, 0.9), abs=0.04)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_trace_draws_its_medians_over_its_stages_and_the_truth_beside_them():
    axis = trace().plot(truth=[0.0, 1.0, 2.0, 4.0]).axes[0]
    medians, truth = lines(axis)
    assert np.allclose(medians, [0, 1, 2, 3], atol=1e-6)
    assert truth == [0.0, 1.0, 2.0, 4.0]
    assert axis.lines[0].get_xdata().tolist() == [1, 2, 3, 4]
    band = axis.collections[0].get_datalim(axis.transData)  # the widest: 90 %
    assert (band.y0, band.y1) == pytest.approx((-0.9, 3.9), abs=0.02)


def test_a_truth_that_stands_still_is_one_number():
    for truth in (0.5, [0.5], {"x": [0.5]}, {"x": 0.5}):
        assert lines(trace().plot(truth=truth).axes[0])[1] == [0.5] * 4
    assert [lines(axis)[1] for axis in trace(2).plot(truth=[0.5, 2.0]).axes] == [[0.5] * 4, [2.0] * 4]


def test_a_forecast_puts_the_past_before_it():
    axis = forecast().plot(past=[[0.5], [0.7]], truth=[0.0, 1.0, 2.5]).axes[0]
    assert axis.lines[1].get_xdata().tolist() == [3.0, 4.0]
    assert lines(axis)[1] == [0.5, 0.7]
    dated = forecast().plot(past=[[0.5], [0.7]], past_times=[1.0, 2.5]).axes[0]
    assert dated.lines[1].get_xdata().tolist() == [1.0, 2.5]


def test_the_users_own_axes_are_drawn_on():
    figure = matplotlib.figure.Figure()
    own = figure.subplots(1, 2)
    assert POSTERIOR.plot(axes=own) is figure
    assert own[1].get_title(loc="left") == "x[1]"
    with pytest.raises(InputError, match="2 pictures need as many axes; got 1"):
        POSTERIOR.plot(axes=own[0])


def test_what_cannot_be_drawn_is_refused_with_what_to_do():
    with pytest.raises(InputError, match="nothing called 'z'"):
        trace(2).plot(names=["z"])
    with pytest.raises(InputError, match=r"expected the 2 numbers .* got shape \(3,\)"):
        POSTERIOR.plot(truth=[0.0, 1.0, 2.0])
    with pytest.raises(InputError, match=r"`truth` must have one number for x\[0\]; got shape \(4,\)"):
        POSTERIOR.plot(truth={"x": np.zeros((4, 2))})
    with pytest.raises(InputError, match=r"one for each of 4 stages, for x; got shape \(3,\)"):
        trace().plot(truth=[0.0, 1.0, 2.0])
    with pytest.raises(InputError, match=r"nothing called 'y' to plot; there is x\."):
        trace().plot(truth={"y": 1.0})
    many = Trace(jax.vmap(jax.vmap(equally_weighted))(jnp.zeros((2, 4, 101, 1))), Info())
    with pytest.raises(InputError, match="several streams"):
        many.plot()


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    real = importlib.import_module

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(InputError, match="pip install matplotlib"):
        POSTERIOR.plot()
    assert builtins.isinstance(POSTERIOR._repr_html_(), str), "the small pictures do without"


def test_the_looks_of_other_figures_stay_as_they_were():
    before = dict(matplotlib.rcParams)
    POSTERIOR.plot()
    assert dict(matplotlib.rcParams) == before
