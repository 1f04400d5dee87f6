"""The application of docs/applications.md as a distribution: its files, a wheel of them, the wheel installed by pip."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs/applications.md"
FILE = re.compile(r"^`([\w./]+)`:.*?^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Gives the files that the page shows, by their names."""
    return dict(FILE.findall(DOCS.read_text()))


def wheel(folder: Path, found: dict[str, str]) -> Path:
    """Packs files of a project as what a build of them gives."""
    project = tomllib.loads(found["pyproject.toml"])["project"]
    stem = f"{project['name']}-{project['version']}"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
        for group, entries in project["entry-points"].items()
    )
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    packed = {name: text for name, text in found.items() if name != "pyproject.toml"} | {
        f"{stem}.dist-info/METADATA": about,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": points,
    }
    record = f"{stem}.dist-info/RECORD"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in packed.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in (*packed, record)))
    return path


def install(folder: Path, found: dict[str, str]) -> Path:
    """Installs files of a project into a folder of their own, which is given; put it on the path to have them."""
    site = folder / "site"
    options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel(folder, found))], check=True)
    return site


def unpack(folder: Path, found: dict[str, str]) -> Path:
    """Does by hand what pip does with a wheel, for those tests that need several."""
    site = folder / f"site-{len(list(folder.iterdir()))}"
    with zipfile.ZipFile(wheel(folder, found)) as archive:
        archive.extractall(site)
    return site


def broken(name: str, code: str) -> dict[str, str]:
    """Gives the files of an application with this code in it."""
    points = f'[project.entry-points."tsuzuki.apps"]\n{name} = "{name}_app:application"\n'
    return {"pyproject.toml": f'[project]\nname = "{name}"\nversion = "1.0"\n{points}', f"{name}_app.py": code}
