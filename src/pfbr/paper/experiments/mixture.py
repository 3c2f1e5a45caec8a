"""The paper's two-mode posterior: a mixture whose components can swap places, watched stage by stage."""

import dataclasses
from itertools import product
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import IBIS, Exact, OnePassSMC, Prior
from pfbr.inference.method import Method
from pfbr.inference.operator import gaussian_operator
from pfbr.io.records import write_npz
from pfbr.judging.demo.two_modes import TwoModesSettings, draw_truth, mass_below, window_of
from pfbr.judging.evaluate import evaluate, true_draws
from pfbr.judging.stages import at_every_stage
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import grid
from pfbr.models import GaussianMixture, Model
from pfbr.paper.contract import Run
from pfbr.paper.metrics import RESAMPLED, resampled_first
from pfbr.paper.streams import draw_streams
from pfbr.paper.trained import Recipe, obtain
from pfbr.paper.tuned import tuned
from pfbr.particles.density import kde_log_density, silverman
from pfbr.particles.particles import Particles
from pfbr.training.tasks import ModelFamily

CASE, MOVIE = "streams", "movie.npz"
MODE_ERROR = "error of the mode's mass"
SMC = [OnePassSMC(threshold=t, bandwidth=b) for t, b in product((0.5,), (None, 0.05, 0.1, 0.2, 0.4))]
COMPARED = ("pfbr", "pfbr-paper", "pfbr-gaussian", "smc-one-pass", "ibis", "exact", "prior")
FILMED = ("pfbr", "pfbr-paper", "smc-one-pass", "exact")


@dataclasses.dataclass(frozen=True)
class MixtureSettings:
    """Each field with its reason."""

    unknown: tuple[float, float] = (1.0, -2.0)  # as in the paper; (-1, 2) explains its data equally well
    num_streams: int = 25  # the paper shows one; 25 tell luck from skill
    num_stages: int = 30  # as in the paper
    num_particles: int = 256  # idem
    num_draws: int = 1000  # true draws behind a cross entropy
    methods: tuple[str, ...] = COMPARED  # those of the film must be among them
    tuning_streams: int = 8  # on which SMC's bandwidth is chosen
    training_steps: int = 300  # of the paper's operator: about five minutes on one core
    ours_steps: int = 1200  # of ours, about as long
    reach: float = 4.2  # half the side of the picture
    cells: int = 64  # of the picture's side


FULL = MixtureSettings()
QUICK = dataclasses.replace(FULL, num_streams=3, num_stages=10, num_draws=500, tuning_streams=2)


def recipes(settings: MixtureSettings = FULL) -> dict[str, Recipe]:
    """Ours learns from unknowns of the prior; the paper's operator from the very unknown it is tested on, as there."""
    length = settings.num_stages
    return {
        "pfbr": Recipe(
            "mixture",
            "auto",
            settings.ours_steps,
            {"num_particles": 256, "length": length, "batch": 16},
            package="pfbr.inference.pretrained",
        ),
        "pfbr-paper": Recipe(
            "mixture-paper", "paper", settings.training_steps, {"num_particles": 256, "length": length, "batch": 4}
        ),
    }


def mode_error(key, particles, at):
    """How much of the mass is in the wrong mode."""
    return jnp.abs(mass_below(particles) - jnp.mean(at.draws[:, 1] < 0))


def run(run: Run) -> None:
    """All methods on all streams, then a film of the first stream."""
    s: MixtureSettings = run.settings
    model, at = GaussianMixture(), jnp.asarray(s.unknown)
    records = run.case(CASE)
    plans = recipes(FULL if not run.retrain else s)
    ours = obtain(run, plans["pfbr"], model)
    paper = obtain(run, plans["pfbr-paper"], model, families=lambda: (ModelFamily(model, at), None))
    tuning = {"num_particles": s.num_particles, "length": s.num_stages, "num_tasks": s.tuning_streams}
    methods = {
        "pfbr": ours.method,
        "pfbr-paper": paper.method,
        "pfbr-gaussian": gaussian_operator(),
        "smc-one-pass": tuned(run, records, "smc-one-pass", SMC, model, **tuning),
        "ibis": IBIS(),
        "exact": Exact(),
        "prior": Prior(),
    }
    streams = draw_streams(run, model, s.num_streams, s.num_stages, at=at)
    truth_key, run_key, film_key = jax.random.split(jax.random.key(run.seed), 3)
    run.say("the exact posteriors of every stream and stage, on a grid")
    evaluate(
        model,
        streams,
        {name: methods[name] for name in s.methods},
        key=run_key,
        num_particles=s.num_particles,
        truth=true_draws(model, streams, s.num_particles, key=truth_key, num_draws=s.num_draws),
        seed=run.seed,
        metrics={MODE_ERROR: mode_error, RESAMPLED: resampled_first},
        training_seconds={"pfbr": ours.seconds, "pfbr-paper": paper.seconds},
        records=records,
        progress=run.progress(),
    )
    path = records.directory / MOVIE
    if not path.is_file():
        run.say("filming the first stream")
        _film(path, film_key, {name: methods[name] for name in FILMED}, model, streams[0], s)


def _film(path: Path, key, methods: dict[str, Method], model: Model, observations, s: MixtureSettings) -> None:
    """Particles, densities, scores and masses of one stream at every stage, the prior first."""
    truth_key, run_key = jax.random.split(key)
    posteriors = eqx.filter_jit(grid)(model, observations)
    draws = draw_truth(truth_key, model, posteriors, s.num_draws)
    window = window_of(model, observations, posteriors, TwoModesSettings(reach=s.reach, cells=s.cells))
    arrays = {"observations": observations, **window}
    for name, method in methods.items():
        said = at_every_stage(run_key, method, model, observations, s.num_particles)
        seen = {"points": said.points, "weights": jnp.exp(said.log_weights), **_looked_at(said, draws, s)}
        arrays |= {f"{name}_{what}": array for what, array in seen.items()}
    write_npz(path, {name: np.asarray(array, np.float32) for name, array in arrays.items()}, compressed=True)


@eqx.filter_jit
def _looked_at(said: Particles, draws, s: MixtureSettings) -> dict[str, jax.Array]:
    """The density that particles stand for on the picture's cells, their score, and the mass of the mode x2 < 0."""
    ticks = (jnp.arange(s.cells) + 0.5) / s.cells * 2 * s.reach - s.reach
    pixels = jnp.stack(jnp.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)

    def stage(inputs):
        particles, true = inputs
        density = kde_log_density(particles, silverman(particles), pixels)
        return density.reshape(s.cells, s.cells), cross_entropy(particles, true)

    density, score = jax.lax.map(stage, (said, draws))
    return {"density": density, "score": score, "mass": mass_below(said)}
