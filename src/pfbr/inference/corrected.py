"""An operator whose steps are corrected by importance weights, and replaced by a fallback where weights cannot."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.solve import FlowResult, flow
from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.inference.correction import continued_log_density, diagnose, static_log_weights
from pfbr.inference.history import History, empty_history
from pfbr.inference.info import Info, Move
from pfbr.inference.method import Method
from pfbr.inference.ood import ReferenceStatistics
from pfbr.inference.operator import Operator, gaussian_operator
from pfbr.inference.predictive import GaussianPredictive, plain, predictive_log_density, smoothed
from pfbr.inference.tempering import temper
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import bind, conditions_of, unbound
from pfbr.models.inverse_likelihood import InverseLikelihood
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.particles.qmc import draw_prior, draw_transition, transition_noise
from pfbr.particles.resampling import resample
from pfbr.typing import Key, Observation, PerParticle, Points, Scalar

ASTRAY = 0.93  # share of the particles: a flow whose weights leave less is flagged (how often: docs/trust.md)
POOR, UNEVEN, HEAVY = 0.15, 0.35, 0.7  # shares of the particles, and k-hat: when weights cannot mend a step
MISSED = 4.0  # standard errors by which the evidence may fall short of the one without a flow
RESAMPLE = 0.5  # share of the particles below which a filter resamples before it goes on
FALLBACKS = ("auto", "never", "always")
USED = ("no", "by the training-free flow", "by tempered SMC")  # what the numbers in info["used"] mean


class CorrectedState(eqx.Module):
    """`current` is the corrected posterior; its log density is the law the points come from, not the posterior's.

    `log_target` is log p(x, O) at the points where the unknown is at rest. `log_evidence` is log p(O) so far.
    """

    current: Particles
    log_target: PerParticle | None
    support: Points | None  # strict: the independent set whose flow carries the points
    history: History | None
    log_evidence: Scalar


def flagged(report: dict, num_particles: int) -> Bool[Array, ""]:
    """Whether the operator's own particles are wrong after this step: too few of them would count alike.

    An ESS of 0.93 is a χ² distance of 0.08: a mean may be off by 0.27 standard deviations. Weights may still mend that.
    """
    return (report["step_ess"] < ASTRAY * num_particles) | unusable(report, num_particles)


def unusable(report: dict, num_particles: int) -> Bool[Array, ""]:
    """Whether the weights cannot mend a step: ESS below 0.15 of the particles, or below 0.35 with k-hat over 0.7, or
    the evidence falls short of what is seen without a flow.

    A heavy tail of nearly equal weights does no harm, and k-hat is noisy there: it counts where weights are uneven.
    """
    share = report["ess"] / num_particles
    bad = (share < POOR) | ((report["pareto_k"] > HEAVY) & (share < UNEVEN))
    return bad | (report["missed"] > MISSED) | ~jnp.isfinite(report["total"])


class Proposal(eqx.Module):
    """A flow from before the observation, its log weights, and what these say about it."""

    moved: FlowResult
    log_target: PerParticle
    log_weights: PerParticle
    increment: Scalar
    report: dict

    @property
    def particles(self) -> Particles:
        return Particles(self.moved.points, normalise(self.log_weights), self.moved.log_density)


class Corrected(Method):
    """The operator's flow as a proposal, its particles weighted by what the flow got wrong.

    `fallback`: "never" leaves the operator's particles as they are, equally weighted, and only reports. "auto" weighs
    them; a step that is flagged is tried again with the training-free flow, which is kept where it is not flagged; one
    that no weights can mend is replaced by tempered SMC from before the observation. "always" replaces every step.
    `history`: how many observations to store; an unknown at rest is then diagnose against p(x, O) itself, and
    without it (0) against a continuation of the last target. `strict`: i.i.d. draws, moved by the flow of a second,
    independent set, which makes the evidence of a step unbiased; twice the work.
    """

    operator: Operator
    fallback: str = eqx.field(static=True, default="auto")
    history: int = eqx.field(static=True, default=0)
    strict: bool = eqx.field(static=True, default=False)
    try_again: bool = eqx.field(static=True, default=True)  # with the training-free flow, where a step is flagged
    moves: int = eqx.field(static=True, default=6)
    reference: ReferenceStatistics | None = None

    def __check_init__(self):
        if self.fallback not in FALLBACKS:
            raise InputError(f"`fallback` must be one of {', '.join(FALLBACKS)}; got {self.fallback!r}.")
        if not isinstance(self.operator, Operator):
            raise InputError(f"only an Operator can be corrected, since it knows its density; got {self.operator!r}.")
        if self.strict and self.operator.needs_scores:
            raise InputError(
                "the learned map moves a whole set, and cannot carry an independent one: leave `strict` out."
            )
        if self.history < 0:
            raise InputError(f"`history` is a number of observations, 0 for none; got {self.history}.")

    def init(self, key: Key, model: Model, num_particles: int) -> CorrectedState:
        points_key, support_key = jax.random.split(key)
        moving = isinstance(model, StateSpaceModel)
        points = draw_prior(
            points_key if self.strict else key, model, num_particles, qmc=self.operator.qmc and not self.strict
        )
        density = jax.vmap(model.log_prior)(points)
        return CorrectedState(
            equally_weighted(points, density),
            None if moving else density,
            draw_prior(support_key, model, num_particles) if self.strict and not moving else None,
            empty_history(model, self.history) if self.history and not moving else None,
            jnp.zeros((), points.dtype),
        )

    def update(self, key: Key, model: Model, state: CorrectedState, observation: Observation) -> tuple[Any, Info]:
        flow_key, fallback_key = jax.random.split(key)
        likelihood = Likelihood(model, observation)
        step = self._filter if isinstance(model, StateSpaceModel) else self._update_at_rest
        return step(key, flow_key, fallback_key, model, state, likelihood)

    def particles(self, state: CorrectedState) -> Particles:
        return state.current

    def cannot_downdate(self) -> str | None:
        return self.operator.cannot_downdate()

    def remembers(self, state: CorrectedState, row) -> bool | None:
        """Whether the row is among those kept; None where none are."""
        return None if state.history is None else bool(state.history.holds(row.observation))

    def unsupported(self, model: Model) -> str | None:
        return self.operator.unsupported(model)

    def _filter(self, key, flow_key, fallback_key, model, state, likelihood):
        """One step of a particle filter whose proposal is dynamics and flow."""
        resample_key, flow_key = (None, key) if self.fallback == "never" else jax.random.split(flow_key)
        predict_key, move_key = jax.random.split(flow_key)  # with "never", the operator's own keys: its own particles
        before, n = state.current, state.current.num_particles
        if resample_key is not None:
            before = jax.lax.cond(
                ess(before.log_weights) < RESAMPLE * n,
                lambda b: resample(resample_key, b, "systematic"),
                lambda b: b,
                before,
            )
        qmc = self.operator.qmc and not self.strict
        predicted = draw_transition(predict_key, model, before.points, qmc=qmc)
        predictive = plain(model, before) if self.strict else smoothed(model, before, predicted)
        if isinstance(predictive, GaussianPredictive) and not self.strict and self.fallback != "never":
            predicted = predictive.from_normal(transition_noise(predict_key, before.points, qmc=qmc))
        density = predictive.log_density(predicted, equal=True)
        support = None
        if self.strict:
            support = draw_transition(jax.random.fold_in(predict_key, 1), model, before.points, qmc=True)
        start = Particles(predicted, before.log_weights)

        def propose(operator) -> Proposal:
            law = lambda at: predictive.log_density(at, equal=True)
            moved = _carried(operator, move_key, predicted, density, law, likelihood, support)
            log_target = predictive.log_density(moved.points) + likelihood.values(moved.points)
            log_weights = static_log_weights(log_target, moved.log_density)
            increment = jax.nn.logsumexp(log_weights)
            report = diagnose(log_weights, start, likelihood.values(predicted), increment)
            return Proposal(moved, log_target, log_weights, increment, report)

        own = propose(self.operator)
        if self.fallback == "never":
            # what the particles carry on is the operator's own log density
            law = predictive_log_density(model, before.points, predicted, predicted, how=self.operator.predictive)
            current = equally_weighted(own.moved.points, own.moved.log_density - density + law)
            return self._finished(state, current, None, own, own.increment, predicted, likelihood, 0)

        def replace():
            # a draw from each transition, weighted as its ancestor, is a weighted draw from the mixture
            current, gained = temper(fallback_key, start, predictive.log_density, likelihood.values, moves=self.moves)
            return current, None, gained

        current, _, increment, used = self._chosen(own, propose, lambda kept: (kept.particles, None), replace)
        return self._finished(state, current, None, own, increment, predicted, likelihood, used)

    def _update_at_rest(self, key, flow_key, fallback_key, model, state, likelihood):
        """Importance sampling of the posterior of an unknown at rest, the flow of all steps so far as its proposal."""
        move_key = jax.random.split(key)[1] if self.fallback == "never" else flow_key  # the operator's own
        before = state.current
        # the past is what was observed, also while some of it is being taken back
        inner = unbound(model)
        known = rebound(model, inner.model) if isinstance(inner, InverseLikelihood) else model
        history = state.history
        if history is not None:
            history = (
                history.without(likelihood.observation)
                if isinstance(unbound(model), InverseLikelihood)
                else history.append(model, likelihood.observation)
            )
        unmoved = static_log_weights(state.log_target, before.log_density)  # the weights before this observation

        def log_past(x):
            if state.history is None:
                return continued_log_density(before.points, state.log_target, x)
            return jax.vmap(lambda one: known.log_prior(one) + state.history.log_likelihood(known, one))(x)

        def propose(operator) -> Proposal:
            moved = _carried(operator, move_key, before.points, before.log_density, log_past, likelihood, state.support)
            log_target = log_past(moved.points) + likelihood.values(moved.points)
            log_weights = static_log_weights(log_target, moved.log_density)
            increment = jax.nn.logsumexp(log_weights) - state.log_evidence
            report = diagnose(
                log_weights,
                Particles(before.points, normalise(unmoved)),
                likelihood.values(before.points),
                increment,
                log_weights - unmoved,
            )
            return Proposal(moved, log_target, log_weights, increment, report)

        def replace():
            # log_past is not normalised: exp(−log evidence so far) does that
            current, gained = temper(
                fallback_key, before, lambda x: log_past(x) - state.log_evidence, likelihood.values, moves=self.moves
            )
            return current, current.log_density + state.log_evidence + gained, gained

        own = propose(self.operator)
        if self.fallback == "never":
            current, log_target = equally_weighted(own.moved.points, own.moved.log_density), own.log_target
            increment, used = own.increment, 0
        else:
            current, log_target, increment, used = self._chosen(
                own, propose, lambda kept: (kept.particles, kept.log_target), replace
            )
        support = None
        if state.support is not None:
            others = equally_weighted(state.support, jnp.zeros(before.num_particles))
            support = self.operator.move(move_key, others, likelihood).points
        state = CorrectedState(state.current, log_target, support, history, state.log_evidence)
        return self._finished(state, current, log_target, own, increment, before.points, likelihood, used)

    def _chosen(self, own: Proposal, propose, kept, replace):
        """Particles, their log target, the evidence gained, and which of `USED` it was."""
        n = own.log_weights.shape[0]
        best, other = own, jnp.asarray(False)
        if self.fallback == "auto" and self.try_again and not isinstance(self.operator.velocity, AffineVelocity):

            def again():
                second = propose(gaussian_operator())
                # only where nothing is wrong with it: another doubtful step would be no repair
                better = ~flagged(second.report, n) & (second.report["ess"] > own.report["ess"])
                return jax.tree.map(lambda a, b: jnp.where(better, a, b), second, own), better

            best, other = jax.lax.cond(flagged(own.report, n), again, lambda: (own, jnp.asarray(False)))
        bad = jnp.asarray(True) if self.fallback == "always" else unusable(best.report, n)
        chosen = jax.lax.cond(bad, replace, lambda: (*kept(best), best.increment))
        return *chosen, jnp.where(bad, 2, other.astype(jnp.int32))

    def _finished(self, state, current, log_target, own: Proposal, increment, prior, likelihood, used):
        n, report = current.num_particles, own.report  # what is said of a step is said of the operator's own flow
        log_evidence = state.log_evidence + increment
        values = likelihood.values(prior)
        details = {"num_steps": own.moved.num_steps, "step_ess": report["step_ess"], "fallback": jnp.asarray(used)}
        if self.reference is not None:
            details["ood"] = self.reference.distance(prior, likelihood)
        info = Info(
            ess=report["ess"],
            pareto_k=report["pareto_k"],
            log_predictive=increment,
            flagged=flagged(report, n),
            move=jnp.where(jnp.asarray(used) == 2, int(Move.TEMPERED), int(Move.FLOW)),
            possible=jnp.mean(jnp.isfinite(values)),
            undefined=jnp.mean(jnp.isnan(values)),
            details=details,
        )
        return CorrectedState(current, log_target, state.support, state.history, log_evidence), info


def _carried(operator: Operator, key, points, density, law, likelihood, support) -> FlowResult:
    """The operator's flow of the points, or the flow of an independent set, which carries them along. `law`: a function
    whose scores are about those of the density of the points."""
    if support is None:
        scores = jax.grad(lambda at: jnp.sum(law(at)))(points) if operator.needs_scores else None
        moved = operator.move(key, equally_weighted(points, density, scores), likelihood)
        return FlowResult(moved.points, moved.log_density, moved.num_steps)
    context = operator.velocity.prepare(key, support, likelihood)
    return flow(operator.settings, operator.velocity, context, likelihood, points, density, support=support)


def rebound(model: Model, inner: Model) -> Model:
    """Another model under the same conditions."""
    return bind(inner, conditions_of(model), shape=getattr(model, "shape", None))
