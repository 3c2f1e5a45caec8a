"""The records of variational inference on the digits as charts, a table and sentences; computes nothing."""

from pfbr.judging.evaluate import TRAINING
from pfbr.paper.contract import Results
from pfbr.paper.experiments.logistic_vi import TEST_ACCURACY, TEST_SCORE, TRAINING_FREE
from pfbr.paper.views.measured import Measured, number
from pfbr.reporting.parts import LOOKS, Chart, Chooser, Finding, Page, Series, Table

VISITED = "images visited"
WITHIN = 0.003  # of the reference's accuracy: what was asked for


def view(results: Results) -> Page:
    """Test accuracy and log score against images visited, the end of each line, and the distance to the reference."""
    s = results.settings
    n = s["num_particles"]
    records = results.case("vi")
    measured = Measured(records.measurements())
    charts: dict[tuple[str, ...], Chart] = {
        ("accuracy",): _chart(measured, n, TEST_ACCURACY, "accuracy on 1,932 test images"),
        ("log score",): _chart(measured, n, TEST_SCORE, "−log probability of the label (nats)", y_scale="log"),
    }
    return Page(
        title="Logistic regression by variational inference",
        lead=(
            f"Eight or six, from {records.settings['images']:,} training images. The operator is trained by its error "
            f"after {s['num_stages']} batches of {s['batch']} alone, scored on as many other images: its first "
            f"gradient step comes after {2 * s['num_stages'] * s['batch']:,}. The training-free flow follows a stream "
            f"of batches, as the baselines do. Only the {n} transported particles classify the 1,932 test images. The "
            f"reference is NUTS on a subsample of {s['nuts_images']:,} images."
        ),
        findings=_findings(measured, n),
        parts=[
            Chooser(
                "Test images against images visited",
                "Baselines are tuned on validation images. They update with every batch; those that store images look "
                "at them again without being charged for it.",
                ("measure",),
                charts,
            ),
            _table(measured, n),
        ],
        figures={"vi": list(charts.values())},
        facts=[
            "The particles of the learned operator carry its factor and the information of the last stream's images: "
            "its line is noisy. All others hold at their end the information of all images that they have seen.",
            "The target is the posterior of all training images under the prior N(0, I).",
        ],
    )


def _chart(measured: Measured, n: int, metric: str, y_label: str, **options) -> Chart:
    series = []
    for name in measured.methods(metric, n):
        line = measured.per_stage(name, metric, n)
        if name == "truth":  # one number, at all abscissae
            far = max(m.stage or 0 for other in measured.methods(metric, n) for m in measured.stages(other, metric, n))
            series.append(Series(name, [100.0, float(far)], [line.y[0]] * 2, label="NUTS on a subsample"))
        else:
            series.append(Series(name, line.x, line.y))
    return Chart("", VISITED, y_label, series, x_scale="log", **options)


def _findings(measured: Measured, n: int) -> list[Finding]:
    """Each of ours against the reference, then against those with a better log score at the end."""
    truth = measured.stages("truth", TEST_ACCURACY, n)
    ours = [name for name in ("pfbr", TRAINING_FREE) if measured.stages(name, TEST_ACCURACY, n)]
    if not truth or not ours:
        return []
    found = []
    for name in ours:
        last = measured.stages(name, TEST_ACCURACY, n)[-1]
        distance = last.value - truth[-1].value
        text = (
            f"{LOOKS[name].label}: after {last.stage:,} images its particles classify {100 * last.value:.2f} % of the "
            f"test images rightly, NUTS {100 * truth[-1].value:.2f} %: {number(100 * distance, 2, signed=True)} points."
        )
        found.append(Finding(text, abs(distance) <= WITHIN or distance > 0))
    ends = {name: measured.stages(name, TEST_SCORE, n)[-1].value for name in measured.methods(TEST_SCORE, n)}
    best = min(ours, key=lambda name: ends[name])
    for name, score in ends.items():
        if name in (*ours, "truth"):
            continue
        if score < ends[best]:
            scores = f"{number(score, 4)} against {number(ends[best], 4)}"
            found.append(Finding(f"{LOOKS[name].label} ends with a better log score: {scores}.", False))
    return found


def _table(measured: Measured, n: int) -> Table:
    methods = measured.methods(TEST_ACCURACY, n)
    rows = []
    for name in methods:
        accuracy, score = (measured.stages(name, metric, n)[-1] for metric in (TEST_ACCURACY, TEST_SCORE))
        seconds = measured.whole(name, TRAINING, n)
        rows.append(
            [
                "NUTS on a subsample" if name == "truth" else LOOKS[name].label,
                f"{accuracy.stage:,}",
                f"{100 * accuracy.value:.2f} %",
                number(score.value, 4),
                "–" if seconds is None else f"{seconds.value:.0f} s",
            ]
        )
    return Table(
        "At the end",
        f"{n} particles; the 1,932 official test images, as they are. Log score: −log probability of the label (nats).",
        ["method", "images visited", "test accuracy", "test log score", "time"],
        rows,
        methods,
    )
