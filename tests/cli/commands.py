"""How the tests call the command line, and what a refusal looks like."""

from pathlib import Path

from typer.testing import CliRunner

from pfbr.cli import app


def pfbr_command(*words, **options):
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def refused(result, *said: str) -> None:
    """Exit status 2, one line on stderr that says what is wrong, no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for words in said:
        assert words in lines[0], lines[0]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
