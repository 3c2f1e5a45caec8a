"""The rivals: other ways to update a posterior online, one a file, all with the contract of `pfbr.online`."""

from pfbr.baselines.bootstrap_smc import BootstrapSMC
from pfbr.baselines.daum_huang import DaumHuang
from pfbr.baselines.enkf import EnKF
from pfbr.baselines.exact import Exact
from pfbr.baselines.ibis import IBIS
from pfbr.baselines.never_learning import NeverLearning
from pfbr.baselines.one_pass_smc import OnePassSMC
from pfbr.baselines.optimal_smc import OptimalSMC

__all__ = ["IBIS", "BootstrapSMC", "DaumHuang", "EnKF", "Exact", "NeverLearning", "OnePassSMC", "OptimalSMC"]
