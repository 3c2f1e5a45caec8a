"""The rivals: other ways to update a posterior online, one a file, all with the contract of `inference.method`."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax

from pfbr.baselines.aesmc import AESMC, fit_aesmc
from pfbr.baselines.bootstrap_smc import BootstrapSMC
from pfbr.baselines.daum_huang import DaumHuang
from pfbr.baselines.enkf import EnKF
from pfbr.baselines.exact import Exact
from pfbr.baselines.ibis import IBIS
from pfbr.baselines.kernel_bayes import KernelBayes
from pfbr.baselines.kernel_filter import KernelFilter
from pfbr.baselines.mirror_descent import MirrorDescent
from pfbr.baselines.nonparametric_vi import NonparametricVI
from pfbr.baselines.one_pass_smc import OnePassSMC
from pfbr.baselines.optimal_smc import OptimalSMC
from pfbr.baselines.prior import Prior
from pfbr.baselines.proposals import new_proposal
from pfbr.baselines.sgld import SGLD
from pfbr.baselines.streaming_svi import StreamingSVI
from pfbr.baselines.svgd import SVGD
from pfbr.baselines.tuning import Tuned, tune
from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.typing import Key


class Rival(NamedTuple):
    """How to make a method: ready at once, or, where `train` is given, better after training for some minutes."""

    ready: Callable[[Model], Method]
    train: Callable[[Key, Model, float], Method] | None = None


def _aesmc(kind: str) -> Rival:
    return Rival(
        lambda model: AESMC(new_proposal(jax.random.key(0), model, kind)),
        lambda key, model, minutes: fit_aesmc(key, model, kind=kind, minutes=minutes).method,
    )


REGISTRY: dict[str, Rival] = {
    "exact": Rival(lambda model: Exact()),
    "prior": Rival(lambda model: Prior()),
    "smc": Rival(lambda model: BootstrapSMC()),
    "smc-multinomial": Rival(lambda model: BootstrapSMC(resampling="multinomial")),
    "smc-optimal": Rival(lambda model: OptimalSMC()),
    "smc-one-pass": Rival(lambda model: OnePassSMC()),
    "ibis": Rival(lambda model: IBIS()),
    "aesmc-mlp": _aesmc("mlp"),
    "aesmc-gru": _aesmc("gru"),
    "enkf": Rival(lambda model: EnKF()),
    "daum-huang": Rival(lambda model: DaumHuang()),
    "daum-huang-local": Rival(lambda model: DaumHuang(localised=True)),
    "kbr": Rival(lambda model: KernelBayes()),
    "kmcf": Rival(lambda model: KernelFilter()),
    "svi": Rival(lambda model: StreamingSVI()),
    "svi-mean-field": Rival(lambda model: StreamingSVI(full_rank=False)),
    "sgld": Rival(lambda model: SGLD()),
    "svgd": Rival(lambda model: SVGD()),
    "pmd": Rival(lambda model: MirrorDescent()),
    "npv": Rival(lambda model: NonparametricVI()),
}


def names() -> list[str]:
    """The names that `make` knows."""
    return list(REGISTRY)


def make(name: str, model: Model, *, history: int | None = None) -> Method:
    """A rival by name with its default settings, untrained; an error where it cannot do the model.

    `history` is how many rows those that look back may store.
    """
    if name not in REGISTRY:
        raise InputError(f"there is no method {name!r}; the methods are {', '.join(REGISTRY)}.")
    method = REGISTRY[name].ready(model)
    if history is not None and hasattr(method, "capacity"):
        method = dataclasses.replace(method, capacity=max(history, 1))
    reason = method.unsupported(model)
    if reason is not None:
        raise InputError(f"{name} cannot do {type(model).__name__}: {reason}")
    return method


__all__ = [
    "AESMC",
    "IBIS",
    "REGISTRY",
    "SGLD",
    "SVGD",
    "BootstrapSMC",
    "DaumHuang",
    "EnKF",
    "Exact",
    "KernelBayes",
    "KernelFilter",
    "MirrorDescent",
    "NonparametricVI",
    "OnePassSMC",
    "OptimalSMC",
    "Prior",
    "Rival",
    "StreamingSVI",
    "Tuned",
    "fit_aesmc",
    "make",
    "names",
    "tune",
]
