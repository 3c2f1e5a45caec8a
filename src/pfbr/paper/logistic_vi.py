"""Logistic regression by variational inference: the operator learns to end at the posterior of all training images."""

import dataclasses
import time

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import SGLD, MirrorDescent, NonparametricVI, StreamingSVI
from pfbr.inference.architectures import build, choose
from pfbr.inference.method import Method
from pfbr.inference.operator import Operator
from pfbr.io.records import Measurement, Records
from pfbr.judging.evaluate import TRAINING
from pfbr.metrics.nuts import nuts
from pfbr.metrics.prequential import log_predictive
from pfbr.models.minibatch import MiniBatch
from pfbr.paper.contract import Experiment, Run
from pfbr.paper.digit_methods import ARCHITECTURE
from pfbr.paper.digit_tasks import stores, unseen_images
from pfbr.paper.digits.rotations import RotatedDigits, digit_model, rows
from pfbr.paper.judging import TEST_SEED, TUNED, TUNING_SEED
from pfbr.paper.logistic_vi_view import R_HAT, TEST_ACCURACY, TEST_SCORE, view
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.training.objectives.final_error import FinalErrorObjective, transport
from pfbr.training.settings import TrainingSettings
from pfbr.training.step import optimiser, train_step


@dataclasses.dataclass(frozen=True)
class VISettings:
    """Each field with its reason."""

    batch: int = 128  # as in the paper
    num_stages: int = 10  # idem
    num_particles: int = 256  # for every method
    training_particles: int = 128  # in a gradient step of ours
    training_steps: int = 300  # gradient steps of ours: 1,280 images move the particles, 1,280 others judge them
    learning_rate: float = 1e-2  # Adam's, falling along a cosine
    solver_steps: int = 8  # the factor becomes narrow: four steps from N(0, I) to it were not always stable
    rival_batches: int = 200  # what the rivals see, 25,600 images
    tuning_batches: int = 20  # what they see while they are tuned; 0: with the settings that the full run chose
    nuts_images: int = 8192  # the subsample of the reference
    nuts_draws: int = 250  # of each of four chains


FULL = VISettings()
QUICK = dataclasses.replace(
    FULL, num_particles=128, training_steps=40, rival_batches=40, tuning_batches=0, nuts_images=2048, nuts_draws=100
)
CHOSEN = {"svi": 1, "sgld": 1, "pmd": 3, "npv": 0}  # what the full run chose, for runs that do not tune


def candidates(capacity: int) -> dict[str, dict[str, Method]]:
    """Rivals and their settings to choose from; those that store images draw eight batches of them for a gradient."""
    return {
        "svi": {f"rate {r}": StreamingSVI(rate=r) for r in (0.03, 0.1, 0.3)},
        "sgld": {f"step {e}": SGLD(step_size=e, batch=8, capacity=capacity) for e in (0.03, 0.1, 0.3)},
        "pmd": {
            f"step {e}, bandwidth {h} of Silverman's": MirrorDescent(
                step_size=e, smoothing=h, batch=8, capacity=capacity
            )
            for e in (0.01, 0.1, 0.3)
            for h in (0.3, 1.0)
        },
        "npv": {f"rate {r}": NonparametricVI(rate=r, batch=4, capacity=capacity) for r in (0.03, 0.1, 0.3)},
    }


def run(run: Run) -> None:
    """Ours, the rivals and the reference, all judged on the 1,932 official test images as they are."""
    s: VISettings = run.settings
    train, validation = (_upright(store) for store in stores(run.data, batch=s.batch))
    test = rows(*(jnp.asarray(a) for a in unseen_images(0)))
    records = run.case("vi", images=int(train.labels.shape[0]))
    done = {m.method for m in records.measurements() if m.metric == TRAINING}
    if "pfbr" not in done:
        run.say("learning the operator")
        records.add(_ours(run, train, test))
        run.tick()
    stream = train.sample(jax.random.key(TEST_SEED + run.seed), s.rival_batches).observations
    for name, options in candidates(s.rival_batches + s.tuning_batches).items():
        if name not in done:
            method = _tuned(run, records, name, list(options.values()), validation)
            run.say(f"running {name}")
            records.add(_rival(run, name, method, stream, test))
            run.tick()
    if "truth" not in done:
        run.say("NUTS on a subsample")
        records.add(_reference(run, train, test))
        run.tick()


def _upright(store: RotatedDigits) -> RotatedDigits:
    return dataclasses.replace(store, largest_angle=0.0)


def _score(said: Particles, test) -> tuple[float, float]:
    """Accuracy and −log probability of the labels."""
    foretold = _foretell(said, test)
    return float(jnp.mean(foretold > jnp.log(0.5))), -float(jnp.mean(foretold))


@eqx.filter_jit
def _foretell(said: Particles, test):
    return log_predictive(said, digit_model(test.shape[1] - 2, test.shape[0]), test)


def _lines(run: Run, name: str, visited: int, said: Particles, test) -> list[Measurement]:
    accuracy, score = _score(said, test)
    common = {"num_particles": run.settings.num_particles, "seed": run.seed}
    return [
        Measurement(name, TEST_ACCURACY, visited, accuracy, None, **common),
        Measurement(name, TEST_SCORE, visited, score, None, **common),
    ]


def _looked_at(num: int) -> set[int]:
    """Numbers up to `num` at equal distances on a logarithmic scale."""
    return {int(n) for n in np.unique(np.round(np.geomspace(1, num, 24)))}


def _ours(run: Run, family: RotatedDigits, test) -> list[Measurement]:
    """Gradient steps on the error after the last stage; only the transported particles classify."""
    s: VISettings = run.settings
    model = family.model
    key = jax.random.key(run.seed)
    design = choose("informed", model, **ARCHITECTURE["informed"], steps=s.solver_steps)
    operator = build(jax.random.fold_in(key, 0), design)
    settings = TrainingSettings(
        steps=s.training_steps, num_particles=s.training_particles, length=s.num_stages, batch=1
    )
    draw = FinalErrorObjective(family, settings, int(family.labels.shape[0]))
    memory = optimiser(settings).init(eqx.filter(operator, eqx.is_inexact_array))

    @eqx.filter_jit
    def last(operator: Operator, family: RotatedDigits, step_key) -> Particles:
        # the very images that the last gradient step has seen: looking costs no more of them
        draw_key, run_key = jax.random.split(jax.random.split(step_key, 1)[0])
        shown = family.sample(draw_key, 2 * s.num_stages).observations[: s.num_stages]
        return transport(run_key, operator, model, shown, s.num_particles)

    found: list[Measurement] = []
    looked_at, seconds = _looked_at(s.training_steps), 0.0
    for step in range(s.training_steps):
        rate = s.learning_rate * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / s.training_steps)))
        step_key, began = jax.random.fold_in(key, step + 1), time.perf_counter()
        operator, memory, loss, _ = train_step(step_key, draw, operator, memory, jnp.asarray(rate))
        loss.block_until_ready()
        seconds += time.perf_counter() - began
        if step + 1 in looked_at:
            visited = 2 * (step + 1) * s.batch * s.num_stages  # as many again judge the particles
            found += _lines(run, "pfbr", visited, last(operator, family, step_key), test)
    return [*found, Measurement("pfbr", TRAINING, None, seconds, None, s.num_particles, None, run.seed)]


@eqx.filter_jit
def _advance(key, method: Method, model: MiniBatch, state, batch):
    return method.update(key, model, state, batch)[0]


def _follow(run: Run, method: Method, stream, stages: set[int]):
    """The particles after each of `stages` batches."""
    s: VISettings = run.settings
    model = digit_model(stream.shape[-1] - 2, s.batch)
    key = jax.random.key(run.seed)
    # numbers as arrays: settings that differ only in numbers share one compilation
    method = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, method)
    state = method.init(key, model, s.num_particles)
    for m, batch in enumerate(stream, start=1):
        state = _advance(jax.random.fold_in(key, m), method, model, state, batch)
        if m in stages:
            yield m, method.particles(state)


def _rival(run: Run, name: str, method: Method, stream, test) -> list[Measurement]:
    s: VISettings = run.settings
    began, found = time.perf_counter(), []
    for m, said in _follow(run, method, stream, _looked_at(s.rival_batches)):
        found += _lines(run, name, m * s.batch, said, test)
    seconds = time.perf_counter() - began
    return [*found, Measurement(name, TRAINING, None, seconds, None, s.num_particles, None, run.seed)]


def _tuned(run: Run, records: Records, name: str, options: list[Method], store: RotatedDigits) -> Method:
    """The setting with the best log score on validation images after a short stream of others of them."""
    known = [m for m in records.measurements() if m.method == name and m.metric == TUNED]
    if known:
        return options[int(known[-1].value)]
    s: VISettings = run.settings
    if s.tuning_batches == 0:
        return options[CHOSEN[name]]
    run.say(f"tuning {name}")
    observations = store.sample(jax.random.key(TUNING_SEED), s.tuning_batches + 16).observations
    stream, judged = observations[: s.tuning_batches], observations[s.tuning_batches :]
    scores = []
    for method in options:
        (_, said), *_ = _follow(run, method, stream, {s.tuning_batches})
        score = _score(said, judged.reshape(-1, judged.shape[-1]))[1]
        scores.append(score if np.isfinite(score) else np.inf)
    best = int(np.argmin(scores))
    records.add([Measurement(name, TUNED, None, float(best), None, s.num_particles, None, TUNING_SEED)])
    return options[best]


def _reference(run: Run, store: RotatedDigits, test) -> list[Measurement]:
    """Four chains on the posterior of a subsample, given as one batch."""
    s: VISettings = run.settings
    key = jax.random.key(TEST_SEED + run.seed + 2)
    began = time.perf_counter()
    batches = store.sample(key, -(-s.nuts_images // s.batch)).observations
    images = batches.reshape(1, -1, batches.shape[-1])[:, : s.nuts_images]
    model = digit_model(images.shape[-1] - 2, s.nuts_images)
    truth = nuts(key, model, images, stages=[1], num_draws=s.nuts_draws, num_warmup=s.nuts_draws)
    found = _lines(run, "truth", s.nuts_images, equally_weighted(truth.draws[0]), test)
    seconds = time.perf_counter() - began
    common = {"num_particles": s.num_particles, "seed": run.seed}
    return [
        *found,
        Measurement("truth", R_HAT, None, float(jnp.max(truth.r_hat)), None, **common),
        Measurement("truth", TRAINING, None, seconds, None, **common),
    ]


VI = Experiment("logistic-vi", "Logistic regression by variational inference", FULL, QUICK, run, view, own_data=True)
