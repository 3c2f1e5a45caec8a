"""Start the command line, or say in one line which extra it needs."""

import os
import sys

from pfbr.io.compiled import LEAST_SECONDS, usual_directory

# Which extra installs what a command may not find.
EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "cli",
    "blackjax": "rivals",
    "scipy": "rivals",
    "sklearn": "rivals",
    "pandas": "frames",
    "polars": "frames",
    "narwhals": "frames",
    "pyarrow": "frames",
    "arviz": "arviz",
    "numpyro": "numpyro",
    "pyspark": "spark",
}


def main() -> None:
    """What the script `pfbr` calls."""
    keep_compiled_functions()
    try:
        from pfbr.cli import app
    except ModuleNotFoundError as error:
        said = missing_extra(error)
        if said is None:
            raise
        print(f"error: {said}", file=sys.stderr)
        sys.exit(2)
    try:
        app()
    except BrokenPipeError:  # nobody reads any more, as with `| head -1`
        _let_go_of_stdout()
        sys.exit(0)
    except SystemExit as ended:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _let_go_of_stdout()
        except OSError as error:
            _let_go_of_stdout()
            print(f"error: cannot write the answer: {error.strerror}.", file=sys.stderr)
            sys.exit(2)
        raise ended


def _let_go_of_stdout() -> None:
    """Nothing complains at the end about what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def keep_compiled_functions() -> None:
    """What `pfbr.keep_compiled` does, before JAX is imported, which reads these then; what the user has set stays."""
    place = usual_directory()
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to: compile every time
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(place)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(LEAST_SECONDS))


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What to install where a module of an extra is not there; None where something else is missing."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    needs = "the command line needs" if module in ("typer", "rich") else f"this needs {module}, which is in"
    return f'{needs} the extra "{extra}": pip install "pfbr[{extra}]"'
