"""Results of a benchmark as JSON lines, added to a file as they come, so that a run that is cut short keeps its own."""

import json
from typing import Any


def add(path: str | None, result: dict[str, Any]) -> None:
    """One line more; None: nobody asked for a file. What is not a number has no place in JSON and is left out."""
    if path is not None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({name: value for name, value in result.items() if value == value}) + "\n")
