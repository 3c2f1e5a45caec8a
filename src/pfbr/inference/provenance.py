"""How an operator was made: travels with it and its file, and takes no part in what is compiled."""

import json
from typing import Any


class Provenance:
    """A JSON document. All are equal and hash alike, so that the same network with another story is not compiled again.

    Whoever needs to know whether two stories agree compares their `document`.
    """

    def __init__(self, document: dict[str, Any] | None = None):
        self._text = json.dumps(document or {})

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Provenance)

    def __hash__(self) -> int:
        return hash(Provenance)

    def __repr__(self) -> str:
        return f"Provenance({', '.join(self.document) or 'nothing told'})"
