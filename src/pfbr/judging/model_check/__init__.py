"""Is a model ready? What to ask it, how, and what was found."""

from pfbr.judging.model_check.check import CheckSettings, check_model, is_ready
from pfbr.judging.model_check.findings import FAULT, GOOD, NOTE, Finding

__all__ = ["FAULT", "GOOD", "NOTE", "CheckSettings", "Finding", "check_model", "is_ready"]
