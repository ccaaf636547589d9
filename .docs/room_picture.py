"""The picture of the rooms, drawn from the imports of the package whenever the site is built."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx

import wpinq

PACKAGE = Path(wpinq.__file__).parent
MARK = "<!-- rooms -->"
WIDE, HIGH, GAP = 118, 26, 34


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the picture where the page asks for it, as MkDocs asks hooks to."""
    return markdown.replace(MARK, f"<figure>{drawn()}</figure>") if page.file.src_uri == "architecture.md" else markdown


def room(module: str) -> str:
    """The room of a module: a folder of the core, of the programs or of the package, or a file at its root."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2] if parts[0] in ("core", "apps") and len(parts) > 1 else parts[:1])


@cache
def imports() -> nx.DiGraph:
    """Which room imports which; a room that every other uses is left out."""
    arrows = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        own = ".".join(("wpinq", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wpinq.") and own != "wpinq":
                arrows[room(own)].add(room(node.module))
    tools = {path.stem for path in PACKAGE.glob("*.py")} - {"collection", "protection"} | {"html", "core"}
    return nx.DiGraph((one, other) for one, others in arrows.items() for other in others
                      if one != other and not tools & {one, other})  # fmt: skip


def drawn() -> str:
    """The rooms as SVG: each above what it imports; only arrows that no others imply."""
    graph = nx.transitive_reduction(imports())
    floors = list(nx.topological_generations(graph))
    across = max(map(len, floors)) * (WIDE + GAP)
    places = {
        name: ((number + 0.5) * across / len(floor), row * (HIGH + GAP) + HIGH)
        for row, floor in enumerate(floors)
        for number, name in enumerate(sorted(floor))
    }
    lines = (
        f'<line x1="{places[one][0]:.0f}" y1="{places[one][1] + HIGH / 2:.0f}" x2="{places[other][0]:.0f}" '
        f'y2="{places[other][1] - HIGH / 2:.0f}" stroke="currentColor" stroke-opacity="0.3"/>'
        for one, other in graph.edges
    )
    boxes = (
        f'<rect x="{x - WIDE / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{WIDE}" height="{HIGH}" rx="4" '
        f'fill="{"#4051b5" if name.startswith("core/") else "#666"}"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="11" fill="#fff">{name}</text>'
        for name, (x, y) in places.items()
    )
    high = len(floors) * (HIGH + GAP) + HIGH
    title = "Rooms of wpinq: each stands above what it imports; the core is blue"
    return (f'<svg role="img" aria-label="{title}" viewBox="0 0 {across:.0f} {high}" '
            f'style="width:100%">{"".join(lines)}{"".join(boxes)}</svg>')  # fmt: skip
