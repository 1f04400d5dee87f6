"""Fuzzes readers byte by byte, led by what code they reach: `make fuzz SECONDS=60 TARGETS="wheel http"`.

Each target is a process of its own, which ends when it hangs or grows too large. What it finds lies in
`build/fuzz/<target>/found-…`, and `python -m tests.fuzz TARGET FILE` does it again. The corpus is kept, and grows.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

FOLDER = Path("build/fuzz")
HANGS = 60
"""What takes so many seconds hangs: led code is several times as slow as ours is, and the machine may be busy."""
MOST_MEMORY = 2048
"""Megabytes; what needs more blows up."""
LONGEST = {"document": 1024, "document-name": 300}
"""Bytes of an input, where fewer say as much: what becomes of many, and how soon, the tests of long texts see."""
WORDS = {
    "document": (
        *(
            "とは",
            "をいう",
            "という",
            "「",
            "」",
            "。",
            "、",
            "・",
            "ー",
            " is a ",
            " means ",
            "# ",
            "## ",
            "**",
            "```",
            "~~~",
            "---\n",
        ),
        *(
            "<!--",
            "-->",
            "](",
            "| ",
            "|---|",
            "- ",
            "1) ",
            ": ",
            "：",
            "<term>",
            "</term>",
            "＜",
            "&lt;",
            "\r\n",
            "\u200b",
            "https://",
        ),
    ),
}
"""What the fuzzer would not think of by itself."""
COUNTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def corpus(name: str) -> Path:
    """Gives the folder of inputs that reach something new, with the seeds in it."""
    folder = FOLDER / name / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()[name]):
        (folder / f"seed-{number}").write_bytes(seed)
    return folder


def words(name: str) -> list[str]:
    """Writes the words of a target down for the fuzzer."""
    if name not in WORDS:
        return []
    spelled = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in WORDS[name])
    (FOLDER / name / "words").write_text("".join(f'"{each}"\n' for each in spelled))
    return [f"-dict={FOLDER / name / 'words'}"]


def fuzz(name: str, seconds: int) -> tuple[int, list[Path]]:
    """Fuzzes a target; gives how often it was called, and what was found."""
    folder = corpus(name).parent
    options = [f"-max_total_time={seconds}", f"-timeout={HANGS}", f"-rss_limit_mb={MOST_MEMORY}"]
    options += [f"-max_len={LONGEST.get(name, 8192)}", *words(name)]
    options += ["-print_final_stats=1", f"-artifact_prefix={folder}/found-", str(folder / "corpus")]
    with (folder / "log").open("w") as log:
        subprocess.run([sys.executable, "-m", "tests.fuzz.led", name, str(folder), *options], stderr=log, check=False)
    counted = COUNTED.findall((folder / "log").read_text(errors="replace"))
    return int(counted[-1]) if counted else 0, sorted(folder.glob("found-*"))


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and Path(arguments[1]).is_file():
        TARGETS[arguments[0]](Path(arguments[1]).read_bytes())
        return 0
    seconds, *names = arguments or ["60"]
    worst = 0
    for name in names or TARGETS:
        executed, found = fuzz(name, int(seconds))
        why = [] if executed else [FOLDER / name / "log"]
        print(f"{name:<13} {executed:>9,} executions, {len(found)} findings", *found, *why, flush=True)  # noqa: T201 - its table
        worst = max(worst, bool(found or not executed))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
