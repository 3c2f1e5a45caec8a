"""The command line: one file a command. `app` is made when it is asked for, since it needs the extra `cli`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pfbr.cli.commands import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name == "app":
        from pfbr.cli.commands import app

        return app
    raise AttributeError(f"module 'pfbr.cli' has no attribute {name!r}")
