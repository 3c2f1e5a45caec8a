"""A report is one line; a terminal gets a bar that is drawn over itself, a file a line every tenth."""

import io

from pfbr.training.progress import Progress, describe, text_bar


def report(**changes):
    told = {
        "step": 50,
        "fraction": 0.5,
        "loss": 1.25,
        "score": 0.125,
        "best_score": 0.1,
        "against_exact": True,
        "seconds": 30.0,
        "seconds_left": 90.0,
        "skipped": 0,
    }
    return Progress(**(told | changes))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_report_is_one_line():
    assert describe(report()) == "step 50  loss 1.250  above exact +0.125 (best +0.100)  1:30 left"
    assert "held-out loss -2.000" in describe(report(against_exact=False, score=-2.0))
    assert describe(report(skipped=3)).endswith("skipped 3")
    assert "  0:00 left" in describe(report(seconds_left=-34.0))
    assert "? left" in describe(report(seconds_left=float("inf")))


def test_a_terminal_gets_a_bar_on_one_line():
    screen = Terminal()
    show = text_bar(screen)
    for fraction in (0.25, 0.5, 1.0):
        show(report(fraction=fraction))
    text = screen.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert text.count("\r") == 3
    assert "█" * 12 + "░" * 12 in text
    assert "█" * 24 in text


def test_a_file_gets_a_line_every_tenth():
    log = io.StringIO()
    show = text_bar(log)
    for step in range(101):
        show(report(step=step, fraction=step / 100))
    lines = log.getvalue().splitlines()
    assert len(lines) == 11
    assert all(line.startswith(f"step {10 * i} ") for i, line in enumerate(lines))
