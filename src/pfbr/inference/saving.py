"""What a session holds that is saved, and a session made of it again."""

from typing import Any

from pfbr.inference.fingerprint import fingerprint
from pfbr.inference.info import Info
from pfbr.inference.replay import Replayed
from pfbr.inference.session_file import SavedSession
from pfbr.models.base import Model

Session = Any  # pfbr.inference.session calls this file, so that it cannot be named here


def saved(session: Session, undo: bool) -> SavedSession:
    """All of it but for the model; without `undo` nothing that could be taken back."""
    known = session._fingerprint
    if known is None or (known.row is None and session._example is not None):
        known = session._fingerprint = fingerprint(session.model, session._example)
    return SavedSession(
        session.method,
        session._key,
        session.num_particles,
        session._past.maxlen or 0,
        session._clock.zero,
        session._clock.time_unit,
        session._example,
        None if session._state is None else session._position(),
        list(session._past) if undo else [],
        known,
        session._scores,
    )


def restored(cls: Any, kept: SavedSession, model: Model) -> Session:
    """A session that goes on where the saved one stood."""
    session = cls(
        model,
        method=kept.method,
        key=kept.key,
        num_particles=kept.num_particles,
        start=kept.start,
        time_unit=kept.time_unit,
        undo=kept.undo,
        scores=kept.scores,
    )
    session._fingerprint, session._example = kept.fingerprint, kept.example
    if kept.example is not None:
        session._rows.resume(kept.example)
    if kept.current is not None:
        session._adopt(Replayed(kept.past, kept.current, Info()))
    return session
