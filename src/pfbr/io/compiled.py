"""Compiled functions kept on disk between programs: compiling takes longer than most of what they do."""

import os
from pathlib import Path

from pfbr.errors import FileError

LEAST_SECONDS = 0.3  # of compilation: what takes less is compiled anew sooner than it is read


def usual_directory() -> Path | None:
    """Where compiled functions go if nobody says otherwise; None where there is no such place."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    place = Path(home) / "pfbr" / "jax"
    return place if place.is_absolute() else None


def keep_compiled(directory: str | os.PathLike | None = None) -> Path:
    """Keep what JAX compiles, so that the next program with the same models and shapes starts in seconds: call it once,
    before the first session. Returns where.

    Without a `directory` it is the one that JAX has been told, else `~/.cache/pfbr/jax`, which the command line uses
    too. This sets JAX's own compilation cache, for all that this process compiles; nothing else in pfbr does.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    told = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if directory is None and told:
        return Path(told)
    place = usual_directory() if directory is None else Path(directory).absolute()
    if place is None:
        raise FileError("there is no home to keep compiled functions in: pass a `directory`.")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"compiled functions cannot be kept in {place}: {error.strerror}.") from None
    compilation_cache.reset_cache()  # it remembers that there was none, once something has been compiled
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return place
