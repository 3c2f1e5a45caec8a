"""Training: settings, one compiled step, the loop, and the state on disk."""

from pfbr.training.fit import fit
from pfbr.training.progress import Progress
from pfbr.training.settings import TrainingSettings

__all__ = ["Progress", "TrainingSettings", "fit"]
