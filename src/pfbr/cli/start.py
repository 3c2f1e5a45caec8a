"""Start the command line, or say in one line which extra it needs."""

import sys

# What the extra `cli` installs.
EXTRA = {"typer", "rich", "matplotlib"}


def main() -> None:
    """What the script `pfbr` calls."""
    try:
        from pfbr.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        print('error: the command line needs the extra "cli": pip install "pfbr[cli]"', file=sys.stderr)
        sys.exit(2)
    app()
