"""Pages that live at the root of the repository are shown on the site as they are, their links turned to match."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FROM_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def on_page_markdown(markdown: str, page, **kwargs) -> str:
    """Links from the root (docs/trust.md) become links from here (trust.md)."""
    name = FROM_ROOT.get(page.file.src_uri)
    if name is None:
        return markdown
    return re.sub(r"\]\(docs/", "](", (ROOT / name).read_text(encoding="utf-8"))
