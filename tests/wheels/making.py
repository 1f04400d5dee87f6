"""Makes real wheels by hand: an archive with modules, METADATA, WHEEL, entry points and a RECORD that fits."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

FLOW = """
from tsuzuki import flow, task
{imports}

@task
async def say(name: str) -> str:
    return f"{text}"

@flow(name="{flow}")
async def greet(name: str = "you") -> str:
    return await say(name)
"""


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def make_wheel(
    folder: Path,
    package: str,
    version: str,
    files: Mapping[str, str | bytes],
    *,
    entries: Sequence[str] = (),
    requires: Sequence[str] = (),
    fits: str = "py3-none-any",
    python: str = "",
    change: Mapping[str, bytes] | None = None,
    packed: bool = True,
) -> Path:
    """Makes a wheel; `change` puts other content into files than RECORD says."""
    info = f"{package}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    metadata += [f"Requires-Python: {python}"] if python else []
    content = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    content[f"{info}/METADATA"] = ("\n".join(metadata) + "\n").encode()
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {fits}\n".encode()
    if entries:
        content[f"{info}/entry_points.txt"] = ("[tsuzuki.flows]\n" + "\n".join(entries) + "\n").encode()
    lines = [f"{path},sha256={digest(data)},{len(data)}" for path, data in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]).encode() + b"\n"
    path = folder / f"{package}-{version}-{fits}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, data in (content | dict(change or {})).items():
            archive.writestr(name, data)
    return path


def flow_wheel(
    folder: Path, package: str, version: str, text: str = "", *, imports: str = "", flow: str = "", **more: object
) -> Path:
    """Makes a wheel with one flow, called like its package, that says its version."""
    said = text or f"{version} greets {{name}}"
    code = FLOW.format(imports=imports, text=said, flow=flow or package)
    return make_wheel(folder, package, version, {f"{package}.py": code}, entries=[f"{package} = {package}"], **more)  # type: ignore[arg-type]
