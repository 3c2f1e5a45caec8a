"""A panel is as many sessions: the same particles whoever else reports, and what is refused changes one stream only."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.history import empty_history
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.inference.panel.numbers import number_of
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.particles.particles import Particles, ess, normalise

MODEL = GaussianMean(2, observation_std=1.0)
SYSTEM = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
STREAMS = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
N = 16


def panel_of(model=MODEL, **settings):
    return pfbr.Panel(model, **{"capacity": 8, "num_particles": N, "key": 5, **settings})


def session_of(number, model=MODEL, **settings):
    """The session of the stream that was named as this number."""
    key = jax.random.fold_in(jax.random.key(5), number)
    return pfbr.Session(model, **{"num_particles": N, "key": key, "history": 256, **settings})


class Drift(pfbr.StateSpaceModel):
    """A walk in continuous time, pushed by its inputs; heavy tails, and nothing below −50 or above 90."""

    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0])

    def sample_transition(self, key, x, *, dt, inputs):
        return x + inputs["push"] * dt + jnp.sqrt(dt) * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        value = jax.scipy.stats.t.logpdf(observation - x, 4.0)
        return jnp.where(observation < -50, -jnp.inf, jnp.where(observation > 90, jnp.nan, value))


@pytest.mark.parametrize(
    ("model", "method"), [(MODEL, "auto"), (SYSTEM, "auto"), (SYSTEM, "smc")], ids=["static", "filter", "a rival"]
)
def test_it_is_as_many_sessions_whoever_else_reports(model, method):
    panel, sessions = panel_of(model, method=method), [session_of(s, model, method=method) for s in range(3)]
    together = panel.update(STREAMS[:, 0], streams=["a", "b", "c"])
    single = [session.update(row) for session, row in zip(sessions, STREAMS[:, 0], strict=True)]
    np.testing.assert_allclose(together.particles, [p.particles for p in single], atol=1e-5)
    np.testing.assert_allclose(together.mean(), [p.mean() for p in single], atol=1e-5)
    some = panel.update(STREAMS[[2, 0], 1], streams=["c", "a"])  # rows follow the call
    for row, s in enumerate([2, 0]):
        own = sessions[s].update(STREAMS[s, 1])
        np.testing.assert_allclose(some.particles[row], own.particles, atol=1e-4)
        np.testing.assert_allclose(some[row].mean(), own.mean(), atol=1e-4)
        if own.info.log_evidence is not None:
            assert some.info.log_evidence[row] == pytest.approx(own.info.log_evidence, abs=1e-4)
    np.testing.assert_allclose(panel.posterior("b").particles, single[1].particles, atol=1e-5)
    assert [panel.stage(name) for name in panel.streams] == [2, 1, 2]
    assert panel.streams == ["a", "b", "c"]
    assert len(panel) == 3


def test_two_reports_of_one_stream_in_a_call_are_taken_in_turn():
    panel, session = panel_of(), session_of(0)
    said = panel.update([STREAMS[0, 0], STREAMS[1, 0], STREAMS[0, 1]], streams=[7, (1, "x"), 7])
    first, second = (session.update(row) for row in STREAMS[0, :2])
    np.testing.assert_allclose(said.particles[[0, 2]], [first.particles, second.particles], atol=1e-5)
    assert panel.stage(7) == 2


def test_own_times_inputs_and_gaps():
    panel = panel_of(Drift(), method="smc")
    panel.update([[0.3], [0.5]], streams=["a", "b"], time=[1.0, 2.5], inputs={"push": [0.0, 1.0]})
    said = panel.update([None, 0.7], streams=["b", "a"], time=np.array([3.0, 1.5]), inputs={"push": [1.0, 1.0]})
    assert said.status.tolist() == ["not observed", "moved"]
    a, b = session_of(0, Drift(), method="smc"), session_of(1, Drift(), method="smc")
    a.update(0.3, time=1.0, inputs={"push": 0.0})
    b.update(0.5, time=2.5, inputs={"push": 1.0})
    np.testing.assert_allclose(said.particles[1], a.update(0.7, time=1.5, inputs={"push": 1.0}).particles, atol=1e-5)
    np.testing.assert_allclose(said.particles[0], b.update(None, time=3.0, inputs={"push": 1.0}).particles, atol=1e-5)
    assert said.info.log_predictive[0] == 0


class Ruled(GaussianMean):
    """An observation below −50 is impossible; one above 90 has no likelihood at all."""

    def log_likelihood(self, x, observation):
        value = -0.5 * jnp.sum((observation - x) ** 2)
        return jnp.where(observation[0] < -50, -jnp.inf, jnp.where(observation[0] > 90, jnp.nan, value))


def refused_rows(said, words: list[str], panel, before: dict) -> None:
    """The first rows were refused for these reasons, and their streams are as they were."""
    for row, reason in enumerate(words):
        name = said.streams[row]
        assert said.status[row] == "refused"
        assert reason in said.errors[row]
        np.testing.assert_array_equal(panel.posterior(name).particles, before[name])
        np.testing.assert_array_equal(said.particles[row], before[name])


def test_a_refused_observation_leaves_its_stream_as_it_was_and_others_go_on():
    panel, sure = (panel_of(Ruled(2), method="gaussian") for _ in range(2))
    ids, first = list("abcde"), np.linspace(-1, 1, 10).reshape(5, 2)
    for one in (panel, sure):
        one.update(first, ids)
    before = {name: panel.posterior(name).particles for name in ids}
    said = panel.update([[np.inf, 0.0], [99.0, 0.0], [-99.0, 0.0], [0.0, np.nan], [0.4, 0.1]], ids)
    refused_rows(said, ["infinite", "NaN at 100", "−inf", "some components"], panel, before)
    assert "observation 2 of stream 'b'" in said.errors[1]
    assert "4 refused, 1 moved" in repr(said)
    assert said.status[4] == "moved"
    sure.update([[0.4, 0.1]], ["e"])
    np.testing.assert_allclose(panel.update(first, ids).particles, sure.update(first, ids).particles, atol=1e-5)


def test_a_refused_time_or_input_leaves_its_stream_as_it_was():
    panel = panel_of(Drift(), method="smc")
    ids = list("abcd")
    panel.update(np.zeros((4, 1)), ids, time=1.0, inputs={"push": np.zeros(4)})
    before = {name: panel.posterior(name).particles for name in ids}
    inputs = {"push": [0.0, 0.0, np.nan, 0.0]}
    said = panel.update(np.zeros((4, 1)), ids, time=[0.5, np.nan, 2.0, 2.0], inputs=inputs)
    refused_rows(said, ["before the stream's last", "finite", "`inputs`"], panel, before)
    assert said.status[3] == "moved"


def test_a_stream_whose_first_report_is_refused_has_not_begun():
    panel = panel_of(Ruled(2), method="gaussian")
    said = panel.update([[99.0, 0.0], [0.1, 0.0]], ["x", "y"])
    assert panel.streams == ["y"]
    assert np.isnan(said.mean()[0]).all()
    assert np.isfinite(said.mean()[1]).all()
    nothing = panel_of(Ruled(2), method="gaussian").update([[np.inf, 0.0]], ["x"])
    assert np.isnan(nothing.mean()).all()


def test_streams_end_and_their_room_is_used_again():
    panel = panel_of(capacity=3)
    panel.update(STREAMS[:, 0], ["a", "b", "c"])
    with pytest.raises(InputError, match=r"room for 3 streams.*`capacity`"):
        panel.update(STREAMS[:1, 0], ["d"])
    panel.remove("b")
    panel.remove(["a"])
    assert panel.streams == ["c"]
    said = panel.update(STREAMS[:2, 1], ["d", "b"])
    np.testing.assert_allclose(said.particles[1], session_of(4).update(STREAMS[1, 1]).particles, atol=1e-5)
    with pytest.raises(InputError, match="no stream 'a'"):
        panel.remove("a")
    with pytest.raises(InputError, match="no stream 'a'"):
        panel.posterior("a")


WRONG = {
    "too few rows": ({"observations": STREAMS[:1, 0], "streams": ["a", "b"]}, "row for each of the 2 streams"),
    "a wrong shape": ({"observations": [[1.0]], "streams": ["a"]}, r"shape \(1, 2\).*got \(1, 1\)"),
    "one id as a text": ({"observations": STREAMS[:1, 0], "streams": "a"}, "list of ids"),
    "ids that cannot be": ({"observations": STREAMS[:1, 0], "streams": [["a"]]}, "hashable"),
    "ids that are not themselves": ({"observations": STREAMS[:1, 0], "streams": [np.nan]}, "equal themselves"),
    "no ids": ({"observations": [], "streams": []}, "empty"),
    "words": ({"observations": [["a", "b"]], "streams": ["a"]}, "array of numbers"),
    "inputs that nobody wants": ({"observations": STREAMS[:1, 0], "streams": ["a"], "inputs": [1.0]}, "`inputs`"),
    "too many times": ({"observations": STREAMS[:1, 0], "streams": ["a"], "time": [1.0, 2.0]}, "`time`"),
    "a date": ({"observations": STREAMS[:1, 0], "streams": ["a"], "time": "2024-01-01"}, "time_unit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_call_that_cannot_be_read_changes_nothing(name):
    call, message = WRONG[name]
    panel = panel_of()
    with pytest.raises(InputError, match=message):
        panel.update(**call)
    assert len(panel) == 0


def test_the_prior_may_be_that_of_the_first_report():
    panel = panel_of(Drift(), method="smc", start=None, time_unit="D")
    none = {"push": [1.0]}
    first = panel.update([[np.nan]], ["a"], time="2024-03-05", inputs=none)
    late = panel.update([None], ["b"], time="2024-05-05", inputs=none)
    assert first.std()[0, 0] < 1.5
    assert late.std()[0, 0] < 1.5  # two months would have made it eight
    assert abs(panel.update([None], ["a"], time="2024-03-15", inputs=none).mean()[0, 0] - 10) < 3


class TwoSpeeds(Method):
    """Weighs while observations are small; else starts again from draws around the observation."""

    history: int = eqx.field(static=True, default=300)

    def init(self, key, model, num_particles):
        points = jax.random.normal(key, (num_particles, 2))
        return points, jnp.full(num_particles, -jnp.log(float(num_particles))), empty_history(model, self.history)

    def weigh(self, key, model, state, observation):
        points, log_weights, rows = state
        weighed = normalise(log_weights + jax.vmap(model.log_likelihood, (0, None))(points, observation))
        return (points, weighed, rows.append(model, observation)), Info(ess=ess(weighed)), jnp.abs(observation[0]) < 2

    def update(self, key, model, state, observation):
        points = observation + jax.random.normal(key, state[0].shape)
        moved = (points, jnp.full_like(state[1], -jnp.log(float(len(points)))), state[2].append(model, observation))
        weighed, info, enough = self.weigh(key, model, state, observation)
        return jax.tree.map(lambda a, b: jnp.where(enough, a, b), weighed, moved), info

    def particles(self, state):
        return Particles(state[0], state[1])


def test_only_those_are_moved_that_need_it():
    panel, sessions = panel_of(method=TwoSpeeds()), [session_of(s, method=TwoSpeeds()) for s in range(3)]
    rows = np.array([[0.1, 0.0], [6.0, 0.0], [-0.2, 0.1]])
    said = panel.update(rows, ["a", "b", "c"])
    assert said.status.tolist() == ["weighed", "moved", "weighed"]
    assert panel.share_moved == pytest.approx(1 / 3)
    own = [session.update(row) for session, row in zip(sessions, rows, strict=True)]
    np.testing.assert_allclose(said.particles, [p.particles for p in own], atol=1e-6)
    np.testing.assert_allclose(said.weights, [p.weights for p in own], atol=1e-6)


def test_streams_get_more_room_as_their_rows_come():
    panel = panel_of(method=TwoSpeeds())
    panel.update([[0.0, 0.0]], ["young"])
    assert [store.rows for store in panel._streams.stores] == [75, 150, 300]
    small = panel.bytes_per_stream
    rows = np.random.default_rng(1).normal(size=(160, 1, 2))
    for row in rows:
        panel.update(row, ["old"])
    place = panel._streams.places["old"]
    assert panel._streams.store[place] == 2
    history = panel._streams.stores[2].read(panel._streams.slot[[place]]).own[2]
    assert history.count[0] == 160
    np.testing.assert_allclose(history.stored.observations[0, :160], rows[:, 0], rtol=1e-6)
    assert panel._streams.stores[2].bytes_per_stream > 2 * small
    assert panel.stage("young") == 1


class Heavy(GaussianMean):
    """Student's t noise, sharp enough that any observation leaves few particles."""

    def log_likelihood(self, x, observation):
        return jnp.sum(jax.scipy.stats.t.logpdf(observation - x, 3.0, scale=self.observation_std))


@pytest.mark.slow
def test_the_default_method_moves_as_in_a_session():
    model = Heavy(1, 1.0, 0.3)
    panel = panel_of(model, num_particles=32, history=8)
    said = panel.update([[0.1], [2.0], [None]], ["a", "b", "c"])
    assert said.status.tolist() == ["moved", "moved", "not observed"]
    own = session_of(1, model, num_particles=32, history=8).update([2.0])
    np.testing.assert_allclose(said.particles[1], own.particles, atol=1e-3)


def test_forecasts_are_those_of_sessions():
    panel, session = panel_of(SYSTEM, method="gaussian"), session_of(1, SYSTEM, method="gaussian")
    panel.update(STREAMS[:, 0], ["a", "b", "c"])
    session.update(STREAMS[1, 0])
    for asked in ({"horizon": 2}, {"times": [1.5, 3.0]}):
        ahead, own = panel.predict(["c", "b"], **asked), session.predict(**asked)
        np.testing.assert_allclose(ahead.states.mean()[1], own.states.mean(), atol=1e-4)
        np.testing.assert_allclose(ahead.observations.quantile(0.9)[1], own.observations.quantile(0.9), atol=1e-4)
        np.testing.assert_array_equal(ahead.times[1], own.times)
    assert len(panel.predict(horizon=1)) == 3
    for wrong, message in [({}, "how far"), ({"times": [0.5]}, "looks ahead"), ({"horizon": 0}, "horizon")]:
        with pytest.raises(InputError, match=message):
            panel.predict(**wrong)
    with pytest.raises(InputError, match="no stream to predict"):
        panel_of(SYSTEM).predict(horizon=1)


def test_by_id_the_order_of_naming_is_of_no_matter():
    rows, names = STREAMS[:, 0], ["a", "b", "c"]
    forth = panel_of(by_id=True).update(rows, streams=names)
    panel = panel_of(by_id=True)
    back = panel.update(rows[::-1], streams=names[::-1])
    np.testing.assert_array_equal(back.particles[::-1], forth.particles)
    assert not np.array_equal(forth.particles[0], panel_of().update(rows, streams=names).particles[0])
    again = pfbr.Panel.from_bytes(panel.to_bytes(), MODEL)
    np.testing.assert_array_equal(
        again.update(rows, streams=["d", "e", "f"]).particles, panel.update(rows, streams=["d", "e", "f"]).particles
    )
    assert number_of((np.int64(7), "x")) == number_of((7, "x")) != number_of(7)
