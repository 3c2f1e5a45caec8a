"""Logistic regression over rotated digits: an operator learned on many tasks is Bayes' rule on new ones."""

import dataclasses

import jax
from jax import numpy as jnp

from pfbr.inference.method import Method
from pfbr.inference.operator import gaussian_operator
from pfbr.io.records import Measurement, Records
from pfbr.judging.evaluate import SECONDS, TRAINING, measure_cost
from pfbr.paper.contract import Run
from pfbr.paper.digits.methods import recipe, tuned_baselines
from pfbr.paper.digits.rotations import RotatedDigits, digit_model
from pfbr.paper.digits.scoring import CALIBRATION_ERROR, measurements, predict, worst_starts
from pfbr.paper.digits.tasks import stores, unseen_streams
from pfbr.paper.streams import TEST_SEED
from pfbr.paper.trained import Trained, obtain

OPERATOR, ZEROED = "digits", "digits-zeroed"
BASELINES = ("smc-one-pass", "svi", "sgld", "pmd", "npv", "ibis")
NUM_FEATURES = 50


@dataclasses.dataclass(frozen=True)
class MetaSettings:
    """Each field with its reason."""

    num_tasks: int = 10  # unseen angles, as in the paper
    num_stages: int = 60  # batches in a stream: 1,920 of the 1,932 test images, none twice
    batch: int = 32  # as in the paper
    num_particles: int = 256  # for every method, the same ones at first
    tuning_tasks: int = 3  # validation tasks on which baselines are tuned; 0: with the settings that the full run chose
    tuning_stages: int = 20  # batches of each
    bad_starts: int = 10  # the worst first particles ...
    bad_starts_among: int = 200  # ... of this many draws


FULL = MetaSettings()
QUICK = dataclasses.replace(FULL, num_tasks=4, num_stages=20, num_particles=128, tuning_tasks=0, bad_starts=4)


def run(run: Run) -> None:
    """Test tasks, bad starts, undeformed images, and the sanity check, each with its own records."""
    s: MetaSettings = run.settings
    made = _Stores(run)
    model = digit_model(NUM_FEATURES, s.batch)
    ours = obtain(run, recipe(OPERATOR), model, families=lambda: made(False))
    online = run.case("online", tasks=s.num_tasks)
    baselines = tuned_baselines(
        run,
        online,
        model,
        lambda: made(False)[1],
        capacity=s.num_stages,
        num_particles=s.num_particles,
        num_tasks=s.tuning_tasks,
        length=s.tuning_stages,
        names=BASELINES,
    )
    methods = {"pfbr-meta": ours.method, "pfbr-gaussian": gaussian_operator(qmc=False), **baselines}
    seed = TEST_SEED + run.seed
    streams, fresh = unseen_streams(seed, s.num_tasks, s.num_stages, batch=s.batch)
    keys = jax.random.split(jax.random.key(seed), s.num_tasks)  # the same for every method: the same first particles
    _measure(run, online, methods, keys, streams, fresh, ours)
    _bad_starts(run, methods, streams, fresh)
    plain = unseen_streams(seed, s.num_tasks, s.num_stages, batch=s.batch, deformed=False)
    best = {name: methods[name] for name in ("pfbr-meta", "pfbr-gaussian", "svi")}
    _measure(run, run.case("undeformed", tasks=s.num_tasks), best, keys, *plain)
    blind = obtain(run, recipe(ZEROED), model, families=lambda: made(True))
    both = {"pfbr-meta": blind.method, "pfbr-gaussian": methods["pfbr-gaussian"]}
    zeroed = unseen_streams(seed, s.num_tasks, s.num_stages, batch=s.batch, zeroed=True)
    _measure(run, run.case("zeroed", tasks=s.num_tasks), both, keys, *zeroed, blind)


class _Stores:
    """Training and validation digits, made when they are first asked for: a resumed run may need none."""

    def __init__(self, run: Run):
        self.batch, self.stream = run.settings.batch, run.data
        self.made: dict[bool, tuple[RotatedDigits, RotatedDigits]] = {}

    def __call__(self, zeroed: bool):
        if zeroed not in self.made:
            self.made[zeroed] = stores(self.stream, batch=self.batch, zeroed=zeroed)
        return self.made[zeroed]


def _measure(
    run: Run,
    records: Records,
    methods: dict[str, Method],
    keys: jax.Array,
    streams: jax.Array,
    fresh: jax.Array,
    trained: Trained | None = None,
) -> None:
    """Each method once. Its lines are written together, so that one of them tells that all are there."""
    s: MetaSettings = run.settings
    model = digit_model(NUM_FEATURES, s.batch)
    done = {m.method for m in records.measurements() if m.metric == CALIBRATION_ERROR}
    for name, method in methods.items():
        if name in done:
            continue
        run.say(f"{records.directory.name}: {name}")
        said = predict(keys, method, model, streams, fresh, s.num_particles)
        found = measurements(name, said, s.num_particles, run.seed)
        common = {"num_particles": s.num_particles, "seed": run.seed}
        if trained is not None and name == "pfbr-meta":
            found.append(Measurement(name, TRAINING, None, trained.seconds, **common))
        if records.directory.name == "online":
            cost = measure_cost(keys[0], method, model, streams[0], s.num_particles)[SECONDS]
            found.append(Measurement(name, SECONDS, None, cost, **common))
        records.add(found)
        run.tick()


def _bad_starts(run: Run, methods: dict[str, Method], streams: jax.Array, fresh: jax.Array) -> None:
    """The first task again, from the particles that predict its first batch worst."""
    s: MetaSettings = run.settings
    model = digit_model(NUM_FEATURES, s.batch)
    many = jax.random.split(jax.random.key(TEST_SEED + run.seed + 1), s.bad_starts_among)
    keys, _ = worst_starts(many, methods["pfbr-gaussian"], model, streams[0], s.bad_starts, s.num_particles)
    first, others = (jnp.repeat(array[:1], s.bad_starts, axis=0) for array in (streams, fresh))
    _measure(run, run.case("bad-starts", starts=s.bad_starts), methods, keys, first, others)
