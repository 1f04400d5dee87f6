"""Without an extra, whatever needs it says so, with the command that brings it; everything else goes on."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.acceptance.processes import ROOT
from tsuzuki import extras

WITHOUT = """
import sys
for module in {modules!r}:
    sys.modules[module] = None
from tsuzuki.cli import main
for line in {lines!r}:
    try:
        main.main(line.split())
    except SystemExit as ended:
        print(ended.code, file=sys.stderr)
"""
NATS = "nats://127.0.0.1:9"


def said_without(extra: str, folder: Path, *lines: str) -> list[str]:
    """Gives what each command says where an extra is missing, and how it ended; no server is on the path."""
    code = WITHOUT.format(modules=extras.BRINGS[extra], lines=lines)
    (bare := folder / "python").symlink_to(sys.executable)
    environment = {"PATH": "", "PYTHONPATH": ":".join(path for path in sys.path if path), "HOME": str(folder)}
    told = subprocess.run([bare, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return told.stderr.splitlines()


def test_every_extra_is_known() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.BRINGS) == set(declared) - {"all"}


def test_every_command_that_needs_nats_says_so(tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text("from tsuzuki import flow\n\n@flow\ndef one() -> int:\n    return 1\n")
    commands = [
        *(f"nats {verb}" for verb in ("up", "status", "doctor", "leave")),
        *(f"nats {verb} b --backend {NATS}" for verb in ("backup", "restore")),
        *(f"{verb} --backend {NATS}" for verb in ("list", "run flows.py", "backup b", "restore b", "doctor")),
        *(f"{verb} --backend {NATS}" for verb in ("keys list", "worker --flows flows.py", "serve")),
    ]
    said = said_without("nats", tmp_path, *(f"-q {command}" for command in commands))
    assert len(said) == 2 * len(commands)
    for command, line, code in zip(commands, said[::2], said[1::2], strict=True):
        assert ("pip install 'tsuzuki[nats]'" in line, code) == (True, "1"), f"{command}: {line}"


def test_a_gateway_says_what_it_needs_and_the_rest_goes_without_it(tmp_path: Path) -> None:
    needed = "error: the gateway needs the extra `gateway`: pip install 'tsuzuki[gateway]' [ERR-TSUZUKI-0018]"
    assert said_without("gateway", tmp_path, "list", "serve --port 0")[-3:] == ["0", needed, "1"]
    other_server = "import sys; sys.modules['fastapi'] = None; import tsuzuki.gateway"
    told = subprocess.run([sys.executable, "-c", other_server], capture_output=True, text=True, check=False).stderr
    assert told.splitlines()[-1].endswith("the gateway needs the extra `gateway`: pip install 'tsuzuki[gateway]'")


def test_a_glossary_of_japanese_documents_says_what_would_know_their_words(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("機械学習とは、データから学ぶ手法である。機械学習は自然言語処理に使われる。")
    command = "glossary generate -i docs -o glossary.md --provider offline"
    *_, told, code = said_without("ja", tmp_path, command)
    assert (told.rpartition(": ")[2], code) == ("pip install 'tsuzuki[ja]'", "0")
