"""From measurements to charts, cells and sentences: what the views of all experiments have in common."""

import math
from collections.abc import Iterable, Sequence

from pfbr.io.records import Measurement
from pfbr.reporting.parts import LOOKS, Chart, Finding, Series

STAGES = "observations so far"
OURS = ("pfbr", "pfbr-gaussian", "pfbr-paper")
YARDSTICKS = ("exact", "prior")  # neither ours nor baselines


class Measured:
    """The measurements of one case, looked up by what they are."""

    def __init__(self, measurements: Iterable[Measurement]):
        self.all = list(measurements)
        self._whole = {(m.method, m.metric, m.num_particles): m for m in self.all if m.stage is None}

    def methods(self, metric: str, num_particles: int | None = None) -> list[str]:
        """The methods that were measured by a metric, in the order of LOOKS."""
        found = {
            m.method
            for m in self.all
            if m.metric == metric and num_particles in (None, m.num_particles) and m.method in LOOKS
        }
        return [name for name in LOOKS if name in found]

    def particle_counts(self, method: str, metric: str) -> list[int]:
        return sorted(n for name, what, n in self._whole if name == method and what == metric and n is not None)

    def whole(self, method: str, metric: str, num_particles: int | None) -> Measurement | None:
        """The mean over all stages, with its standard error over streams."""
        return self._whole.get((method, metric, num_particles))

    def stages(self, method: str, metric: str, num_particles: int) -> list[Measurement]:
        own = [
            m
            for m in self.all
            if (m.method, m.metric, m.num_particles) == (method, metric, num_particles) and m.stage is not None
        ]
        return sorted(own, key=lambda m: m.stage or 0)

    def per_stage(self, method: str, metric: str, num_particles: int) -> Series:
        own = self.stages(method, metric, num_particles)
        return Series(method, [float(m.stage or 0) for m in own], [m.value for m in own], [m.error or 0.0 for m in own])

    def per_count(self, method: str, metric: str) -> Series:
        own = [self._whole[method, metric, n] for n in self.particle_counts(method, metric)]
        return Series(
            method, [float(m.num_particles or 0) for m in own], [m.value for m in own], [m.error or 0.0 for m in own]
        )


def stage_chart(
    measured: Measured, metric: str, num_particles: int, *, title: str, y_label: str, methods: Sequence[str], **options
) -> Chart:
    """A metric after each observation, one line a method."""
    present = measured.methods(metric, num_particles)
    series = [measured.per_stage(name, metric, num_particles) for name in methods if name in present]
    return Chart(title, STAGES, y_label, series, **options)


def cell(m: Measurement | None, digits: int = 3, *, signed: bool = True) -> str:
    """A number with its error, in as many digits as the error allows."""
    if m is None or math.isnan(m.value):
        return "–"
    if m.error is None or not math.isfinite(m.error) or not math.isfinite(m.value):
        return number(m.value, digits, signed=signed)
    largest = max(abs(m.value), m.error)
    if largest >= 1e6:
        return f"{number(m.value, digits, signed=signed)} ± {number(m.error, digits)}"
    if 0 < largest < 0.5 * 10**-digits:
        return number(m.value, digits, signed=signed)
    kept = digits if m.error <= 0 else min(max(1 - math.floor(math.log10(m.error)), 0), digits)
    value, error = (f"{v:{sign},.{kept}f}" for v, sign in ((m.value, "+" if signed else ""), (m.error, "")))
    return f"{value} ± {error}".replace("-", "−")


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """With fewer digits the larger it is, two that count where it is tiny, and a true minus sign."""
    if not math.isfinite(value):
        return "not finite"
    size, plus = abs(value), "+" if signed else ""
    if 0 < size < 0.5 * 10**-digits or size >= 1e6:
        text = f"{value:{plus}.1e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    else:
        kept = 0 if size >= 1000 else min(digits, 1) if size >= 100 else min(digits, 2) if size >= 1 else digits
        text = f"{value:{plus},.{kept}f}"
    return text.replace("-", "−")


def best_rows(column: Sequence[Measurement | None], eligible: Sequence[bool]) -> set[int]:
    """The best eligible row, and those that lie within its noise: two standard errors of a difference of its kind."""
    known = [(i, m) for i, m in enumerate(column) if m is not None and eligible[i] and math.isfinite(m.value)]
    if not known:
        return set()
    _, leader = min(known, key=lambda pair: pair[1].value)
    return {i for i, m in known if m.value - leader.value <= 2.0 * math.sqrt(2.0) * (leader.error or 0.0)}


def standing(
    measured: Measured,
    metric: str,
    ours: str,
    baselines: Sequence[str],
    num_particles: int,
    *,
    where: str,
    unit: str,
    signed: bool = True,
) -> list[Finding]:
    """Who is below whom by a metric that is better the lower it is, at equal particles, in one plain sentence."""
    mine = measured.whole(ours, metric, num_particles)
    if mine is None:
        return []
    label = f"{where}, {num_particles} particles each: {LOOKS[ours].label}"
    if not math.isfinite(mine.value):
        return [Finding(f"{label} did not stay finite.", False)]
    below: list[str] = []
    equal: list[str] = []
    above: list[str] = []
    for other in baselines:
        theirs = measured.whole(other, metric, num_particles)
        if theirs is None:
            continue
        difference = theirs.value - mine.value if math.isfinite(theirs.value) else math.inf
        noise = 2.0 * math.hypot(theirs.error or 0.0, mine.error or 0.0)
        named = f"{LOOKS[other].label} ({cell(theirs, signed=signed)})"
        if difference > 50.0 * (mine.error or math.inf) and difference <= noise:
            named += ", a mean that few streams decide"
            noise = 0.0  # so far above that its own noise is no excuse
        (below if difference > noise else above if difference < -noise else equal).append(named)
    if not below + equal + above:
        return []
    parts = []
    if above:
        parts.append(f"is beaten by {listed(above)}")
    if below:
        everyone = "every baseline, " if not above and not equal else ""
        parts.append(f"is below {everyone}{listed(below)}")
    if equal:
        parts.append(f"is within two standard errors of {listed(equal)}")
    said = f"{label}, at {cell(mine, signed=signed)} {unit}".rstrip()
    good = False if above else True if not equal else None
    return [Finding(f"{said}, {'; '.join(parts)}.", good)]


def listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
