"""A hook of mkdocs: pages of the site that are made, or stand elsewhere in the project. Writes nothing into docs/."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "tools")]

import reference  # noqa: E402

# Where a page's link out of docs/ leads in the site.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmark.md",
    "newsfragments/README.md": "newsfragments.md",
}
EXAMPLES = "examples.md"


def on_config(config: Any) -> Any:
    """The page on compatibility is made of whole runs of all suites, which take long: there may be none yet."""
    for section in config.nav:
        for pages in section.values():
            if isinstance(pages, list) and not (PROJECT / "docs/compatibility.md").exists():
                pages[:] = [page for page in pages if "compatibility.md" not in page.values()]
    return config


def on_files(files: Files, config: Any) -> Files:
    made = {f"reference/{name}.md": reference.page(name) for name in reference.PAGES}
    made["reference/commands.md"] = reference.commands()
    made[EXAMPLES] = examples()
    for source, name in ELSEWHERE.items():
        made[name] = (PROJECT / source).read_text()
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def examples() -> str:
    parts = [
        "# Examples",
        "Each shows one thing, and is run by the tests. They are in the folder `examples/`.",
    ]
    for path in sorted(PROJECT.glob("examples/*.py")):
        parts.append(f"## {path.name}\n\n```python\n{path.read_text()}```")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that are right in the project are made right in the site."""
    source = next((s for s, name in ELSEWHERE.items() if name == page.file.src_uri), None)
    folder = PROJECT / (source or f"docs/{page.file.src_uri}")

    def target(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        path = (folder.parent / link).resolve()
        if "://" in link or (source is None and path.exists() and path.is_relative_to(PROJECT / "docs")):
            return match[0]
        if page.file.src_uri.startswith("reference/"):
            return match[0]
        name = path.relative_to(PROJECT).as_posix()
        if name.startswith("docs/"):
            return f"]({name.removeprefix('docs/')}{anchor})"
        if name.startswith("examples/"):
            return f"]({EXAMPLES}#{Path(name).name.replace('.', '').lower()})"
        return f"]({ELSEWHERE[name]}{anchor})"

    return re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", target, markdown)
