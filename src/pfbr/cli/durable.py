"""A live stream that survives a kill: every line that was answered is on disk before its answer.

Two files: FILE, all sessions as they were some lines ago, written whole or not at all; and FILE.log, the lines since
then, each on disk before it is answered, which are taken again when the stream is opened. The log is bounded: when it
has grown, the sessions are saved and it is emptied. A kill in between leaves lines that FILE has already: their
sequence numbers say so.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.cli.desk import Desk, StreamId
from pfbr.cli.lines import Columns, Line
from pfbr.errors import FileError, InputError, PfbrError
from pfbr.inference.posterior import Posterior
from pfbr.inference.session import Session
from pfbr.io import containers
from pfbr.io.journal import Journal
from pfbr.models.base import Model
from pfbr.version import VERSION

LINES = 512  # in the log at most: what a start may have to take again
BYTES = 2**20  # idem, for long lines
LAYOUT = 1


class DurableDesk:
    """A desk whose state is in a file; `resumed` says in words where it goes on, None for a new one."""

    def __init__(self, path: str | os.PathLike, model: Model, settings: dict[str, Any], columns: Columns = Columns()):
        self.path = Path(path)
        self._journal = Journal(self.path.with_name(self.path.name + ".log"))
        try:
            self._desk = Desk(model, settings, columns)
            self._options = {name: str(value) for name, value in settings.items()}
            self._saved: dict[StreamId, bytes] = {}  # sessions that have not changed since
            self._sequence = self._lines = 0
            self.resumed: str | None = None
            if self.path.exists():
                self._resume()
            elif self._journal.entries:
                raise FileError(
                    f"{self.path} is gone and {self._journal.path} is there. Restore it, or remove the log."
                )
            self.compact()
        except BaseException:
            self._journal.close()
            raise

    def respond(self, text: str, where: str, on_posterior: Callable[[Posterior, Line], None] | None = None):
        """As `Desk.respond`; what changed something is on disk when this returns."""

        def note(posterior: Posterior, line: Line) -> None:
            self._changed(line)
            if on_posterior is not None:
                on_posterior(posterior, line)

        answer, changed = self._desk.respond(text, where, note)
        if changed:
            self._sequence += 1
            self._lines += 1
            try:
                self._journal.append({"sequence": self._sequence, "line": text})
                if self._lines >= LINES or self._journal.size >= BYTES:
                    self.compact()
            except FileError as error:  # the session is a line ahead of the file: only a new start mends that
                raise FileError(f"{error} The last line was not answered, and does not count.") from None
        return answer, changed

    def compact(self) -> None:
        """Save all sessions, then empty the log."""
        desk = self._desk
        arrays = {}
        for number, (stream, session) in enumerate(desk.sessions.items()):
            content = self._saved.get(stream) or session.to_bytes()
            self._saved[stream] = content
            arrays[f"session[{number}]"] = np.frombuffer(content, np.uint8)
        header = {
            "layout": LAYOUT,
            "pfbr": VERSION,
            "options": self._options,
            "sequence": self._sequence,
            "streams": list(desk.sessions),
            "named": desk.named,
            "highest": desk.highest,
            "last": desk.last,
        }
        containers.write(self.path, "live", header, arrays)
        self._journal.clear()
        self._lines = 0

    def close(self) -> None:
        self.compact()
        self._journal.close()

    def _resume(self) -> None:
        header, arrays = containers.read(self.path, "live")
        if header.get("layout") != LAYOUT:
            raise FileError(
                f"{self.path} was written by pfbr {header.get('pfbr')}, in a layout that this one cannot read."
            )
        for name, value in header["options"].items():
            if self._options.get(name) != value:
                option = {"key": "seed", "num_particles": "particles"}.get(name, name).replace("_", "-")
                raise InputError(
                    f"{self.path} was begun with --{option} {value}, and this is {self._options.get(name)}: give the "
                    "same, or name another file."
                )
        desk = self._desk
        for number, stream in enumerate(header["streams"]):
            content = arrays[f"session[{number}]"].tobytes()
            desk.sessions[stream] = Session.from_bytes(content, desk.model)
            self._saved[stream] = content
        desk.named, desk.highest, desk.last = header["named"], header["highest"], header["last"]
        self._sequence = header["sequence"]
        for entry in self._journal.entries:
            if entry["sequence"] > self._sequence:
                self._take_again(entry)
        stages = ", ".join(
            f"{'' if s is None else f'{s}: '}stage {one.stage}" for s, one in list(desk.sessions.items())[:4]
        )
        more = f" and {len(desk.sessions) - 4} more streams" if len(desk.sessions) > 4 else ""
        numbered = "" if desk.highest is None else f"; the highest number so far is {desk.highest}"
        self.resumed = f"{self.path}: going on at {stages or 'the beginning'}{more}{numbered}."

    def _take_again(self, entry: dict[str, Any]) -> None:
        where = f"line {entry['sequence']} of {self._journal.path}"
        try:
            self._desk.respond(entry["line"], where, lambda _, line: self._changed(line))
        except PfbrError as error:
            raise FileError(f"{where} was answered and cannot be taken again: {error}") from None
        self._sequence = entry["sequence"]

    def _changed(self, line: Line) -> None:
        self._saved.pop(line.id, None)
