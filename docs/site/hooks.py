"""Pages that live at the root of the repository are shown as they are, their links turned to match; so are scripts."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FROM_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def on_page_markdown(markdown: str, page, **kwargs) -> str:
    """Links from the root (docs/trust.md) become links from here (trust.md); {{ script FILE }} becomes the file."""
    markdown = re.sub(r"^\{\{ script (\S+) \}\}$", _script, markdown, flags=re.MULTILINE)
    name = FROM_ROOT.get(page.file.src_uri)
    if name is None:
        return markdown
    return re.sub(r"\]\(docs/", "](", (ROOT / name).read_text(encoding="utf-8"))


def _script(found: re.Match) -> str:
    """A script of the repository, folded."""
    text = (ROOT / found[1]).read_text(encoding="utf-8").rstrip()
    title = f"{found[1]}, {len(text.splitlines())} lines"
    code = "\n".join("    " + line for line in ["```python", *text.splitlines(), "```"])
    return f'??? example "{title}"\n\n{code}\n'
