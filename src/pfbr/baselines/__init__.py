"""The rivals: other ways to update a posterior online, one a file, all with the contract of `pfbr.online`."""

from pfbr.baselines.bootstrap_smc import BootstrapSMC
from pfbr.baselines.one_pass_smc import OnePassSMC

__all__ = ["BootstrapSMC", "OnePassSMC"]
