"""What can go wrong at the edge, each kind with a name of its own; every message says what to do next."""


class PfbrError(Exception):
    """Any error that pfbr raises on purpose."""


class InputError(PfbrError, ValueError):
    """An array, a number or a setting that cannot be used."""


class ModelError(PfbrError, TypeError):
    """A model that lacks a method, or whose methods return the wrong thing."""


class LikelihoodError(PfbrError, ArithmeticError):
    """A likelihood that is NaN, or -inf at every particle: no posterior exists."""


class FileError(PfbrError, OSError):
    """An operator or a checkpoint that cannot be read: damaged, cut short, foreign, or newer than this pfbr."""


class TrainingError(PfbrError, RuntimeError):
    """A training run that cannot go on."""
