"""What ranks of simulated truths say about a method, in a sentence; and what to do about it, in another."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from pfbr.judging.calibration.uniformity import p_values

COVERAGES = (0.5, 0.8, 0.95)
BORDERLINE = 0.001  # refused, but a right method is so unlucky once in a thousand times or more: repeat it


@dataclasses.dataclass(frozen=True)
class RankSummary:
    """What was found. Stages count from 1; `p_by_rank` (stages, quantities) are p-values one by one, `p_value` is
    theirs together: at most this share of all right methods looks as bad."""

    failed_stages: list[int]
    failed: dict[str, int]  # how many stages each quantity failed at
    p_value: float
    p_by_rank: np.ndarray
    outside: np.ndarray  # (stages, quantities): refused
    coverage: np.ndarray  # (3, stages, d)
    not_finite: tuple[int, int] | None  # streams with particles that are not finite, and the first stage


def summarise(ranks: np.ndarray, whole: np.ndarray, level: float) -> RankSummary:
    """From ranks (streams, stages, d + 1), and where particles were finite (streams, stages)."""
    names = quantities(ranks.shape[2])
    broken = ~whole
    by_rank = p_values(np.where(whole[..., None], ranks, 0.5))  # NaN has no rank
    p = np.where(np.any(broken, axis=0, keepdims=True).T, 0.0, by_rank)
    outside = p <= level / p.size
    off_centre = np.where(whole[..., None], np.abs(ranks[..., :-1] - 0.5), np.inf)
    return RankSummary(
        failed_stages=[int(i) + 1 for i in np.flatnonzero(outside.any(axis=1))],
        failed={name: int(count) for name, count in zip(names, outside.sum(axis=0), strict=True) if count},
        p_value=float(min(1.0, p.size * p.min())),
        p_by_rank=p,
        outside=outside,
        coverage=np.stack([np.mean(off_centre <= c / 2, axis=0) for c in COVERAGES]),
        not_finite=(int(broken.any(axis=1).sum()), int(broken.any(axis=0).argmax()) + 1) if broken.any() else None,
    )


def quantities(num: int) -> list[str]:
    """The names of what is ranked: coordinates, and the likelihood."""
    return [f"x{i}" for i in range(1, num)] + ["likelihood of the data"]


def sentence(found: RankSummary, streams: int) -> str:
    """Whether to trust the method, and from which stage on not."""
    length, stages = found.coverage.shape[1], found.failed_stages
    if found.not_finite is not None:
        num, first = found.not_finite
        return (
            f"Do not trust this method {_where(stages, length)}: in {num} of {streams} streams its particles were no "
            f"longer finite, for the first time after observation {first}."
        )
    if not stages:
        return (
            f"Trust this method on streams like these: at each of {length} stages the ranks of {streams} truths look "
            f"uniform, and 95 % intervals held the truth {100 * found.coverage[-1].mean():.1f} % of the time."
        )
    wrong = found.outside[:, :-1]  # the coordinates; where only the likelihood is wrong, all of these stages
    held = found.coverage[-1][wrong] if wrong.any() else found.coverage[-1][np.array(stages) - 1]
    return (
        f"Do not trust this method {_where(stages, length)}: the ranks of the truths are not uniform there (a right "
        f"method looks this bad {odds(found.p_value)}), and 95 % intervals held the truth "
        f"{100 * held.mean():.1f} % of the time."
    )


def advice(found: RankSummary, streams: int, level: float, *, bare: bool) -> str:
    """What to do next."""
    if not found.failed_stages:
        return f"Faults too small for {streams} streams stay unseen; more --streams see more."
    if found.not_finite is None and found.p_value > BORDERLINE:
        return (
            f"This is a borderline case and may be an accident: of right methods, one in {1 / level:.0f} is refused. "
            f"Repeat it with another --seed and --streams {4 * streams}: a real fault will then be far clearer."
        )
    first = found.failed_stages[0]
    use = f"Up to observation {first - 1} nothing was found. " if first > 1 else ""
    blind = ""
    if list(found.failed) == [quantities(found.p_by_rank.shape[1])[-1]]:
        blind = (
            "Each coordinate by itself looks right: it misses what the data say, or how coordinates belong together. "
        )
    what = "--method auto" if bare else "more --particles"
    return f"This is no accident. {use}{blind}Try {what}, or train the operator longer or on longer streams."


def odds(p: float) -> str:
    """A small probability in words."""
    if p < 1e-9:
        return "less than once in a billion times"
    times = 1 / p
    digits = 1 - int(np.floor(np.log10(times)))
    return f"at most once in {round(times, digits):,.0f} times"


def _where(stages: Sequence[int], length: int) -> str:
    """Only what is true: "from … on" where every later stage failed too."""
    first = stages[0]
    if list(stages) == list(range(first, length + 1)):
        return "from the first observation on" if first == 1 else f"from observation {first} on"
    if len(stages) == 1:
        return f"at observation {first} of {length}"
    if len(stages) <= 4:
        return f"at observations {', '.join(map(str, stages[:-1]))} and {stages[-1]} of {length}"
    return f"at {len(stages)} of {length} observations, the first of them {first}"
