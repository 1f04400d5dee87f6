"""Copies the libraries of the dashboard out of `node_modules`, with their imports by file.

`python -m tests.dashboard.vendoring` does it, after package.json names another version. Browsers resolve a bare name
(`from "preact"`) only by an import map, which is an inline script; so these become names of files, and nothing else is
changed.
"""

import hashlib
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "src/tsuzuki/gateway/static/vendor"
README = VENDOR / "README.md"
AXE = Path(__file__).parent / "vendor/axe.min.js"

FILES = {
    "preact.js": ("preact", "dist/preact.mjs"),
    "hooks.js": ("preact", "hooks/dist/hooks.mjs"),
    "signals-core.js": ("@preact/signals-core", "dist/signals-core.mjs"),
    "signals.js": ("@preact/signals", "dist/signals.mjs"),
    "htm.js": ("htm", "dist/htm.module.js"),
    "uplot.js": ("uplot", "dist/uPlot.iife.min.js"),
}
NAMES = {"preact": "./preact.js", "preact/hooks": "./hooks.js", "@preact/signals-core": "./signals-core.js"}
HEAD = """# Libraries of the dashboard

As their packages have them, but for their imports, which name files, and uPlot, which gets an `export` in its last
line. `python -m tests.dashboard.vendoring` makes all of this out of `node_modules`. The licences are in
[LICENSES.txt](LICENSES.txt).

| file | package | version | licence | SHA-256 |
|---|---|---|---|---|
"""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def package(name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((MODULES / name / "package.json").read_text())
    return found


def adapted(name: str, text: str) -> str:
    text = re.sub(r'from"([^"]+)"', lambda found: f'from"{NAMES.get(found[1], found[1])}"', text)
    text = re.sub(r"\n?//# sourceMappingURL=.*\n?", "\n", text)
    return f"{text.rstrip()}\nexport default uPlot;\n" if name == "uplot.js" else text


def rows() -> list[str]:
    found = [(VENDOR / name, *source) for name, source in FILES.items()] + [(AXE, "axe-core", "")]
    return [
        f"| `{path.name}` | {name} | {package(name)['version']} | {package(name)['license']} | `{digest(path)}` |"
        for path, name, _ in found
    ]


def licences() -> str:
    told = [f"{name}\n\n{(MODULES / name / 'LICENSE').read_text()}" for name in dict(FILES.values())]
    return "\n".join(told)


def main() -> None:
    for name, (source, path) in FILES.items():
        (VENDOR / name).write_text(adapted(name, (MODULES / source / path).read_text()))
    AXE.parent.mkdir(exist_ok=True)
    AXE.write_bytes((MODULES / "axe-core/axe.min.js").read_bytes())
    README.write_text(HEAD + "\n".join(rows()) + "\n\n`axe.min.js` lies with the tests, which alone use it.\n")
    (VENDOR / "LICENSES.txt").write_text(licences())


if __name__ == "__main__":
    main()
