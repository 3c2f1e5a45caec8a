"""From measurements to charts, cells and sentences: what the views of all experiments have in common."""

import math
from collections.abc import Iterable, Sequence

from pfbr.experiments.parts import LOOKS, Chart, Finding, Series
from pfbr.records import Measurement

STAGES = "observations so far"
OURS = ("pfbr", "pfbr-gaussian", "pfbr-paper")
YARDSTICKS = ("exact", "never-learning")  # neither ours nor rivals


class Measured:
    """The measurements of one case, looked up by what they are."""

    def __init__(self, measurements: Iterable[Measurement]):
        self._all = list(measurements)
        self._whole = {(m.method, m.metric, m.num_particles): m for m in self._all if m.stage is None}

    def methods(self, metric: str, num_particles: int | None = None) -> list[str]:
        """The methods that were measured by a metric, in the order of LOOKS."""
        found = {
            m.method
            for m in self._all
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
            for m in self._all
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
    """A number with its error as a reader likes it."""
    if m is None:
        return "–"
    text = number(m.value, digits, signed=signed)
    return text if m.error is None or not math.isfinite(m.error) else f"{text} ± {number(m.error, digits)}"


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """With fewer digits the larger it is, and a true minus sign."""
    if not math.isfinite(value):
        return "not finite"
    if abs(value) >= 100:
        digits = 0
    elif abs(value) >= 10:
        digits = min(digits, 1)
    elif abs(value) >= 1:
        digits = min(digits, 2)
    return f"{value:{'+' if signed else ''},.{digits}f}".replace("-", "−")


def best_rows(column: Sequence[Measurement | None], eligible: Sequence[bool]) -> set[int]:
    """The rows that no eligible row beats by more than two standard errors of the difference."""
    known = [(i, m) for i, m in enumerate(column) if m is not None and eligible[i] and math.isfinite(m.value)]
    if not known:
        return set()
    _, leader = min(known, key=lambda pair: pair[1].value)
    return {i for i, m in known if m.value - leader.value <= 2.0 * math.hypot(m.error or 0.0, leader.error or 0.0)}


def standing(
    measured: Measured, metric: str, ours: str, rivals: Sequence[str], num_particles: int, *, where: str, unit: str
) -> list[Finding]:
    """Who is below whom by a metric that is better the lower it is, at equal particles, in plain sentences."""
    mine = measured.whole(ours, metric, num_particles)
    if mine is None or not math.isfinite(mine.value):
        return [Finding(f"{where}: {LOOKS[ours].label} did not stay finite.", False)]
    below: list[str] = []
    equal: list[str] = []
    above: list[str] = []
    for rival in rivals:
        theirs = measured.whole(rival, metric, num_particles)
        if theirs is None:
            continue
        difference = theirs.value - mine.value if math.isfinite(theirs.value) else math.inf
        noise = 2.0 * math.hypot(theirs.error or 0.0, mine.error or 0.0)
        named = f"{LOOKS[rival].label} ({number(theirs.value, signed=True)})"
        (below if difference > noise else above if difference < -noise else equal).append(named)
    label, count = LOOKS[ours].label, f"{num_particles} particles each"
    findings = []
    if below and not above and not equal:
        text = f"{where}: {label} is below every rival, {count}: {number(mine.value, signed=True)} {unit} against "
        findings.append(Finding(text + listed(below) + ".", True))
    elif below:
        text = f"{where}: {label} ({number(mine.value, signed=True)} {unit}) is below {listed(below)}, {count}."
        findings.append(Finding(text, True))
    if equal:
        text = f"{where}: {label} ({number(mine.value, signed=True)} {unit}) cannot be told from {listed(equal)}."
        findings.append(Finding(text))
    if above:
        verb = "wins" if len(above) == 1 else "win"
        text = f"{where}: {listed(above)} {verb} against {label} ({number(mine.value, signed=True)} {unit})."
        findings.append(Finding(text, False))
    return findings


def listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
