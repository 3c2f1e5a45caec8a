"""The records of the rotated digits as charts, a table and sentences; computes nothing."""

from collections.abc import Sequence

from pfbr.io.records import Measurement
from pfbr.judging.evaluate import SECONDS, TRAINING
from pfbr.paper.contract import Results
from pfbr.paper.digits.methods import candidates
from pfbr.paper.digits.scoring import (
    ACCURACY,
    BATCH_ACCURACY,
    CALIBRATION_ERROR,
    DEVIATION,
    FRESH_ACCURACY,
    FRESH_SCORE,
    OBSERVED,
    PREDICTED,
    SCORE,
)
from pfbr.paper.tuned import TUNED
from pfbr.paper.views.measured import Measured, listed, number
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Page, Series, Table

BATCHES = "batches of 32 images seen"
HIGHER = {ACCURACY: True, SCORE: False, FRESH_ACCURACY: True, FRESH_SCORE: False}


def view(results: Results) -> Page:
    """Charts for the test tasks, the bad starts, plain images and the sanity check; a table; who is ahead, and when."""
    n = results.settings["num_particles"]
    cases = {name: Measured(results.case(name).measurements()) for name in results.cases()}
    charts: dict[tuple[str, ...], Chart] = {
        ("rotated digits", what): chart for what, chart in _stage_charts(cases["online"], n).items()
    }
    charts |= {("bad starts", what): chart for what, chart in _bad_start_charts(cases["bad-starts"], n).items()}
    plain = _stage_charts(cases["undeformed"], n)  # there is one undeformed copy of an image: no others to look at
    charts |= {("undeformed digits", what): plain[what] for what in ("accuracy", "log score", "calibration")}
    charts |= {("two features zeroed", what): chart for what, chart in _stage_charts(cases["zeroed"], n).items()}
    figures = {
        "meta": [charts["rotated digits", "accuracy"], charts["rotated digits", "log score"]],
        "meta_posterior": [charts["rotated digits", "other images"], charts["rotated digits", "log score, others"]],
        "meta_bad_starts": [charts["bad starts", "accuracy"]],
        "meta_calibration": [charts["rotated digits", "calibration"]],
        "meta_zeroed": [charts["two features zeroed", "accuracy"]],
    }
    s = results.settings
    return Page(
        title="Logistic regression over rotated digits",
        lead=(
            "Eight or six? Images become 50 standardised principal components and an intercept; each task turns the "
            f"first two by an angle of its own. A method predicts a batch of {s['batch']}, sees the labels, and "
            f"updates its {n} particles; all start from the same draws of N(0, I), so that the first prediction is at "
            f"chance. Means over {s['num_tasks']} angles that training did not meet, on deformed test images that it "
            "did not meet either. Averages begin after the first update."
        ),
        findings=_findings(cases, n, s),
        parts=[
            Chooser(
                "After each batch",
                "Mean over tasks. The band of the prequential accuracy is ± one standard deviation over tasks, other "
                "bands are ± one standard error.",
                ("tasks", "measure"),
                charts,
                ("rotated digits", "accuracy"),
            ),
            _table(cases["online"], n, s),
        ],
        figures=figures,
        facts=_facts(cases, n, s),
    )


def _stage_charts(measured: Measured, n: int) -> dict[str, Chart]:
    def chart(metric: str, title: str, y_label: str, **options) -> Chart:
        series = [measured.per_stage(name, metric, n) for name in measured.methods(metric, n)]
        return Chart(title, BATCHES, y_label, series, **options)

    online = []
    for name in measured.methods(ACCURACY, n):
        line, spread = measured.per_stage(name, ACCURACY, n), measured.stages(name, DEVIATION, n)
        online.append(Series(name, line.x, line.y, [m.value for m in spread] or None))
    calibration = []
    for name in measured.methods(OBSERVED, n):
        observed = {m.stage or 0: m for m in measured.stages(name, OBSERVED, n)}
        predicted = {m.stage or 0: m.value for m in measured.stages(name, PREDICTED, n)}
        bins = sorted(predicted)
        values, errors = [observed[b].value for b in bins], [observed[b].error or 0.0 for b in bins]
        calibration.append(Series(name, [predicted[b] for b in bins], values, errors))
    calibration.append(Series("truth", [0.0, 1.0], [0.0, 1.0], label="perfectly calibrated"))
    return {
        "accuracy": Chart("Prequential accuracy", BATCHES, "mean accuracy of predictions so far", online),
        "log score": chart(SCORE, "Prequential log score", "−log probability of the label (nats)", y_scale="log"),
        "other images": chart(FRESH_ACCURACY, "The posterior on 1,932 other images", "accuracy"),
        "log score, others": chart(
            FRESH_SCORE, "The posterior on 1,932 other images", "−log probability of the label (nats)", y_scale="log"
        ),
        "calibration": Chart(
            "Calibration of all predictions", "probability given to an eight", "share of eights", calibration
        ),
    }


def _bad_start_charts(measured: Measured, n: int) -> dict[str, Chart]:
    charts = _stage_charts(measured, n)
    online = charts["accuracy"]
    title = "From the worst first particles"
    return {
        "accuracy": Chart(title, online.x_label, online.y_label, online.series),
        "log score, others": charts["log score, others"],
    }


def _not_behind(measured: Measured, metric: str, n: int, other: str) -> list[int]:
    """The stages, from the first update on, at which the other method is not behind ours."""
    ours, theirs = measured.stages("pfbr-meta", metric, n), measured.stages(other, metric, n)
    sign = 1.0 if HIGHER[metric] else -1.0
    return [
        a.stage
        for a, b in zip(ours, theirs, strict=True)
        if a.stage and not sign * a.value > sign * b.value  # NaN counts for the other: it must be explained
    ]


def _findings(cases: dict[str, Measured], n: int, s: dict) -> list[Finding]:
    online, findings = cases["online"], []
    others = [name for name in online.methods(ACCURACY, n) if name != "pfbr-meta"]
    for metric, what in (
        (ACCURACY, "prequential accuracy"),
        (SCORE, "prequential log score"),
        (FRESH_ACCURACY, "accuracy on other images"),
        (FRESH_SCORE, "log score on other images"),
    ):
        found = {name: _not_behind(online, metric, n, name) for name in others}
        level = {name: stages for name, stages in found.items() if stages}
        if not level:
            text = f"{what.capitalize()}: the learned operator is ahead of every other method after every one of "
            findings.append(Finding(text + f"{s['num_stages'] - 1} batches.", True))
        else:
            told = [f"{LOOKS[k].label} (after {_span(v)} batches)" for k, v in level.items()]
            text = f"{what.capitalize()}: not ahead of {listed(told)}; ahead of the others throughout."
            findings.append(Finding(text, False))
    first = {name: online.stages(name, FRESH_ACCURACY, n) for name in ("pfbr-meta", "pfbr-gaussian")}
    if all(first.values()):
        text = "After one batch: {} of other images right with the learned operator, {} with the training-free one."
        shares = [_percent(first[name][1].value) for name in first]
        findings.append(Finding(text.format(*shares), first["pfbr-meta"][1].value > first["pfbr-gaussian"][1].value))
    zeroed = cases["zeroed"].whole("pfbr-meta", ACCURACY, n)
    whole = online.whole("pfbr-meta", ACCURACY, n)
    if zeroed is not None and whole is not None:
        text = "With the two rotated features zeroed and the operator learned again, accuracy falls from "
        text += f"{_percent(whole.value)} to {_percent(zeroed.value)} (the paper: to about 65 %)."
        findings.append(Finding(text))
    return findings


def _span(stages: Sequence[int]) -> str:
    return str(stages[0]) if len(stages) == 1 else f"{len(stages)} of them, first {stages[0]}, last {stages[-1]}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _table(measured: Measured, n: int, s: dict) -> Table:
    methods = measured.methods(ACCURACY, n)

    def at(name: str, metric: str, stage: int) -> Measurement:
        return measured.stages(name, metric, n)[stage]

    columns: list[tuple[str, list[float], bool, bool]] = [
        ("next batch, after one", [at(m, BATCH_ACCURACY, 1).value for m in methods], True, True),
        ("prequential accuracy", [measured.whole(m, ACCURACY, n).value for m in methods], True, True),  # type: ignore[union-attr]
        ("prequential log score", [measured.whole(m, SCORE, n).value for m in methods], False, False),  # type: ignore[union-attr]
        ("other images, at the end", [at(m, FRESH_ACCURACY, -1).value for m in methods], True, True),
        ("their log score", [at(m, FRESH_SCORE, -1).value for m in methods], False, False),
        ("calibration error", [measured.whole(m, CALIBRATION_ERROR, n).value for m in methods], False, False),  # type: ignore[union-attr]
    ]
    best = set()
    for c, (_, values, higher, _) in enumerate(columns):
        finite = [v for v in values if v == v]
        leader = max(finite) if higher else min(finite)
        best |= {(r, c + 1) for r, v in enumerate(values) if v == leader}
    rows = []
    for r, name in enumerate(methods):
        cells = [_percent(v[r]) if percent else number(v[r], 4) for _, v, _, percent in columns]
        seconds = measured.whole(name, SECONDS, n)
        rows.append([LOOKS[name].label, *cells, "–" if seconds is None else f"{1e3 * seconds.value:.1f} ms"])
    return Table(
        "All methods on the same streams",
        f"{n} particles, {s['num_tasks']} tasks of {s['num_stages']} batches; prequential columns are means over all "
        "batches but the first. Log scores are −log probability of the label, in nats: lower is better. Bold: best.",
        ["method", *(title for title, *_ in columns), "time of an update"],
        rows,
        methods,
        frozenset(best),
    )


def _facts(cases: dict[str, Measured], n: int, s: dict) -> list[str]:
    online = cases["online"]
    told = []
    for name, options in candidates(s["num_stages"], s["batch"]).items():
        found = online.whole(name, TUNED, n)
        if found is not None:
            told.append(f"{LOOKS[name].label}: {list(options)[int(found.value)]} (of {len(options)})")
    training = online.whole("pfbr-meta", TRAINING, n)
    facts = [
        "Three sets of original images never mix: nine tenths of the official training images to train on, one tenth "
        "to validate and to tune baselines on, the official test images to test on; deformed variants stay with their "
        "original.",
        "Baselines tuned by their prequential log score on validation tasks. " + "; ".join(told) + ".",
        "The learned operator was trained on other angles and images by the prequential log score; it knows what the "
        "tasks have in common, which no method that starts from N(0, I) alone can know.",
    ]
    if training is not None:
        facts.append(f"The operator was trained for {training.value:.0f} s.")
    return facts
