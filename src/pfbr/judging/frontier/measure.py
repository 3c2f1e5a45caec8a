"""Error and CPU time of one method with one number of particles; and up the ladder of numbers until time is out."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from pfbr.baselines import REGISTRY
from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.inference.registry import as_method
from pfbr.io.records import Measurement, Records
from pfbr.judging.demo.tracking import followed
from pfbr.judging.frontier.problems import PROBLEMS, Judged, Problem, distances

OURS = ("auto", "gaussian")
# not rivals here: the truth itself, the prior, a weaker twin, and those that want training
LEFT_OUT = {"exact", "prior", "smc-multinomial", "aesmc-mlp", "aesmc-gru"}
RIVALS = tuple(name for name in REGISTRY if name not in LEFT_OUT)
LADDER = (64, 256, 1024, 4096, 16_384, 65_536)
ERROR, WORST, MILLISECONDS, TRUTH = "error", "worst stream", "CPU milliseconds an update", "error of the truth"


@dataclass(frozen=True)
class FrontierSettings:
    """How much is measured; each field with its reason."""

    seed: int = 7000
    streams: int = 8  # an error is then known to a tenth or two
    most_milliseconds: float = 20.0  # an update that is dearer ends a method's ladder


def frontier(
    records: Records,
    problems: Sequence[str],
    methods: Sequence[str],
    settings: FrontierSettings = FrontierSettings(),
    say: Callable[[str], None] = lambda message: None,
) -> None:
    """Measure what the records do not hold yet, method after method, and add it to them."""
    done = {(m.metric, m.method, m.num_particles): m.value for m in records.measurements()}
    for name in problems:
        problem = PROBLEMS[name]
        say(f"{problem.title}: simulating, and finding the truth")
        seeds = range(settings.seed, settings.seed + settings.streams)
        judged = [problem.stream(problem.model, seed) for seed in seeds]
        error = max(one.error for one in judged)
        records.add([Measurement("truth", f"{TRUTH}: {name}", None, error, num_sequences=len(judged))])
        for method in methods:
            for num in LADDER:
                taken = done.get((f"{MILLISECONDS}: {name}", method, num))
                if taken is None:
                    say(f"{problem.title}: {method} with {num:,} particles")
                    found = list(measured(name, problem, method, num, judged, settings))
                    if not found:  # the method cannot do the model
                        break
                    records.add(found)
                    taken = found[-1].value
                if not taken < settings.most_milliseconds:
                    break
            jax.clear_caches()


def measured(
    name: str, problem: Problem, method_name: str, num: int, judged: Sequence[Judged], settings: FrontierSettings
) -> Iterator[Measurement]:
    """Error, worst stream and CPU milliseconds; nothing where the method refuses the model."""
    length = judged[0].stream.observations.shape[0]
    try:
        method = as_method(method_name, problem.model, rows=length)
    except InputError:
        return
    errors, milliseconds = errors_and_times(method, problem, num, judged, settings.seed)
    spread = errors.std(ddof=1) / len(errors) ** 0.5 if len(errors) > 1 else None
    facts = {"num_particles": num, "num_sequences": len(errors), "seed": settings.seed}
    yield Measurement(method_name, f"{ERROR}: {name}", None, float(errors.mean()), spread, **facts)
    yield Measurement(method_name, f"{WORST}: {name}", None, float(errors.max()), **facts)
    yield Measurement(method_name, f"{MILLISECONDS}: {name}", None, float(np.median(milliseconds)), **facts)


def errors_and_times(method: Method, problem: Problem, num: int, judged: Sequence[Judged], seed: int):
    """Of each stream: root mean square error over stages, and CPU milliseconds an update without compilation."""
    key = jax.random.key(seed)
    run = lambda number: followed(jax.random.fold_in(key, number), method, problem.model, judged[number].stream, num)
    jax.block_until_ready(run(0))  # compiles
    errors, milliseconds = [], []
    for number, one in enumerate(judged):
        begun = time.process_time()
        said = jax.block_until_ready(run(number))
        milliseconds.append(1e3 * (time.process_time() - begun) / one.stream.observations.shape[0])
        away = distances(np.asarray(said.mean), one)
        errors.append(np.sqrt(np.mean(away**2)) if np.all(np.isfinite(away)) else np.inf)
    return np.array(errors), np.array(milliseconds)


__all__ = ["LADDER", "OURS", "RIVALS", "FrontierSettings", "frontier", "measured"]
