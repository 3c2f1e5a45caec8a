"""The browser in which pages are looked at."""

from tests.browser import chromium

__all__ = ["chromium"]
