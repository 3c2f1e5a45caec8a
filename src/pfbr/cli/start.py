"""Start the command line, or say in one line which extra it needs."""

import sys

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
}


def main() -> None:
    """What the script `pfbr` calls."""
    try:
        from pfbr.cli import app
    except ModuleNotFoundError as error:
        said = missing_extra(error)
        if said is None:
            raise
        print(f"error: {said}", file=sys.stderr)
        sys.exit(2)
    app()


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What to install where a module of an extra is not there; None where something else is missing."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    needs = "the command line needs" if module in ("typer", "rich") else f"this needs {module}, which is in"
    return f'{needs} the extra "{extra}": pip install "pfbr[{extra}]"'
