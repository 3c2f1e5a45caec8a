"""Logistic regression by variational inference: an operator learns to end at the posterior of all training images; the
training-free flow and the baselines follow a stream of them."""

import dataclasses
import time

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import SGLD, MirrorDescent, NonparametricVI, StreamingSVI
from pfbr.inference.architectures import build, choose
from pfbr.inference.method import Method, record
from pfbr.inference.operator import Operator, gaussian_operator
from pfbr.io.records import Measurement, Records
from pfbr.judging.evaluate import TRAINING
from pfbr.metrics.nuts import nuts
from pfbr.metrics.prequential import log_predictive
from pfbr.paper.contract import Run
from pfbr.paper.digits.methods import ARCHITECTURE
from pfbr.paper.digits.rotations import RotatedDigits, digit_model, rows
from pfbr.paper.digits.scoring import numbers_as_arrays
from pfbr.paper.digits.tasks import stores, unseen_images
from pfbr.paper.streams import TEST_SEED, TUNING_SEED
from pfbr.paper.tuned import TUNED, remembered
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.training.objectives.final_error import FinalErrorObjective, transport
from pfbr.training.settings import TrainingSettings
from pfbr.training.step import optimiser, train_step
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key

TRAINING_FREE = "pfbr-gaussian"
TEST_ACCURACY, TEST_SCORE, R_HAT = "test accuracy", "test log score", "largest R-hat"


@dataclasses.dataclass(frozen=True)
class VISettings:
    """Each field with its reason."""

    batch: int = 128  # as in the paper
    num_stages: int = 10  # idem
    num_particles: int = 256  # for every method
    training_particles: int = 128  # in a gradient step of ours
    training_steps: int = 300  # gradient steps of ours: 1,280 images move the particles, 1,280 others score them
    learning_rate: float = 1e-2  # Adam's, falling along a cosine
    solver_steps: int = 16  # the factor becomes narrow: from N(0, I) to it eight steps were not always finite
    baseline_batches: int = 200  # what the baselines see, 25,600 images
    tuning_batches: int = 20  # what they see while they are tuned; 0: with the settings that the full run chose
    nuts_images: int = 8192  # the subsample of the reference
    nuts_draws: int = 250  # of each of four chains


FULL = VISettings()
QUICK = dataclasses.replace(
    FULL, num_particles=128, training_steps=40, baseline_batches=40, tuning_batches=0, nuts_images=2048, nuts_draws=100
)
CHOSEN = {"svi": 1, "sgld": 1, "pmd": 3, "npv": 0}  # what the full run chose, for runs that do not tune


def candidates(capacity: int) -> dict[str, dict[str, Method]]:
    """Baselines and settings to choose from; those that store images draw eight batches of them for a gradient."""
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
    """Ours, the baselines and the reference, all scored on the 1,932 official test images as they are."""
    s: VISettings = run.settings
    train, validation = (_upright(store) for store in stores(run.data, batch=s.batch))
    test = rows(*(jnp.asarray(a) for a in unseen_images(0)))
    records = run.case("vi", images=int(train.labels.shape[0]))
    done = {m.method for m in records.measurements() if m.metric == TRAINING}
    if "pfbr" not in done:
        run.say("learning the operator")
        records.add(_ours(run, train, test))
        run.tick()
    stream = train.sample(jax.random.key(TEST_SEED + run.seed), s.baseline_batches).observations
    if TRAINING_FREE not in done:
        run.say("running the training-free flow")
        records.add(_streamed(run, TRAINING_FREE, gaussian_operator(), stream, test))
        run.tick()
    for name, options in candidates(s.baseline_batches + s.tuning_batches).items():
        if name not in done:
            method = _tuned(run, records, name, list(options.values()), validation)
            run.say(f"running {name}")
            records.add(_streamed(run, name, method, stream, test))
            run.tick()
    if "truth" not in done:
        run.say("NUTS on a subsample")
        records.add(_reference(run, train, test))
        run.tick()


def _upright(store: RotatedDigits) -> RotatedDigits:
    return dataclasses.replace(store, largest_angle=0.0)


def _score(said: Particles, test) -> tuple[float, float]:
    """Accuracy and −log probability of the labels."""
    predicted = _log_predictive(said, test)
    return float(jnp.mean(predicted > jnp.log(0.5))), -float(jnp.mean(predicted))


@eqx.filter_jit
def _log_predictive(said: Particles, test):
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


class Drawn(Family):
    """One task and no other: the images of a gradient step, which may then be looked at again at no cost."""

    task: Task

    def sample(self, key: Key, length: int) -> Task:
        return self.task


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
    num_data = int(family.labels.shape[0])
    memory = optimiser(settings).init(eqx.filter(operator, eqx.is_inexact_array))

    @eqx.filter_jit
    def draw(family: RotatedDigits, key) -> Task:
        return family.sample(key, 2 * s.num_stages)

    @eqx.filter_jit
    def last(operator: Operator, task: Task, key) -> Particles:
        return transport(key, operator, model, task.observations[: s.num_stages], s.num_particles)

    found: list[Measurement] = []
    looked_at, seconds = _looked_at(s.training_steps), 0.0
    for step in range(s.training_steps):
        rate = s.learning_rate * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / s.training_steps)))
        draw_key, step_key, look_key = jax.random.split(jax.random.fold_in(key, step + 1), 3)
        began = time.perf_counter()
        task = draw(family, draw_key)
        objective = FinalErrorObjective(Drawn(task), settings, num_data)
        operator, memory, loss, _ = train_step(step_key, objective, operator, memory, jnp.asarray(rate))
        loss.block_until_ready()
        seconds += time.perf_counter() - began
        if step + 1 in looked_at:
            visited = 2 * (step + 1) * s.batch * s.num_stages  # as many again score the particles
            found += _lines(run, "pfbr", visited, last(operator, task, look_key), test)
    return [*found, Measurement("pfbr", TRAINING, None, seconds, None, s.num_particles, None, run.seed)]


def _followed(run: Run, method: Method, stream) -> Particles:
    """The particles after each batch."""
    s: VISettings = run.settings
    model = digit_model(stream.shape[-1] - 2, s.batch)
    return record(jax.random.key(run.seed), numbers_as_arrays(method), model, stream, s.num_particles).particles


def _after(said: Particles, batches: int) -> Particles:
    return Particles(said.points[batches - 1], said.log_weights[batches - 1])


def _streamed(run: Run, name: str, method: Method, stream, test) -> list[Measurement]:
    s: VISettings = run.settings
    began, found = time.perf_counter(), []
    said = jax.block_until_ready(_followed(run, method, stream))
    seconds = time.perf_counter() - began
    for batches in sorted(_looked_at(s.baseline_batches)):
        found += _lines(run, name, batches * s.batch, _after(said, batches), test)
    return [*found, Measurement(name, TRAINING, None, seconds, None, s.num_particles, None, run.seed)]


def _tuned(run: Run, records: Records, name: str, options: list[Method], store: RotatedDigits) -> Method:
    """The setting with the best log score on validation images after a short stream of others of them."""
    known = remembered(records, name)
    if known is not None:
        return options[known]
    s: VISettings = run.settings
    if s.tuning_batches == 0:
        return options[CHOSEN[name]]
    run.say(f"tuning {name}")
    observations = store.sample(jax.random.key(TUNING_SEED), s.tuning_batches + 16).observations
    stream, others = observations[: s.tuning_batches], observations[s.tuning_batches :]
    scores = []
    for method in options:
        said = _after(_followed(run, method, stream), s.tuning_batches)
        score = _score(said, others.reshape(-1, others.shape[-1]))[1]
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
