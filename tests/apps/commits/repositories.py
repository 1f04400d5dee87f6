"""Real repositories for tests, built with git, and what git itself says of them."""

import os
import subprocess
from pathlib import Path

ADA = ("Ada", "ada@example.com")
GRACE = ("Grace Hopper", "grace@example.com")
JUN = ("山田 純", "jun@example.com")


class Repository:
    """A repository in a folder; every commit has the time and the author that the test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
        quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_EDITOR": "true"}
        name, email = ADA
        who = {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": email,
            "GIT_COMMITTER_NAME": "C",
            "GIT_COMMITTER_EMAIL": "c@x",
        }
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            input=stdin,
            env=os.environ | quiet | who | variables,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode(errors="replace")

    def commit(
        self,
        date: str,
        files: dict[str, str | bytes] | None = None,
        *,
        author: tuple[str, str] = ADA,
        message: str = "change",
    ) -> str:
        for name, content in (files or {}).items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A")
        self._with(date, author, "commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def merge(self, name: str, date: str, *, author: tuple[str, str] = ADA) -> str:
        self._with(date, author, "merge", "-q", "--no-ff", "-m", f"merge {name}", name)
        return self.head()

    def _with(self, date: str, author: tuple[str, str], *arguments: str) -> None:
        name, email = author
        self.git(
            *arguments,
            GIT_AUTHOR_NAME=name,
            GIT_AUTHOR_EMAIL=email,
            GIT_AUTHOR_DATE=date,
            GIT_COMMITTER_DATE=date,
        )

    def head(self, name: str = "HEAD") -> str:
        return self.git("rev-parse", name).strip()

    def many(self, number: int, *, branch: str = "main", start: int = 1_600_000_000) -> None:
        """Adds so many small commits, quickly."""
        lines = []
        for at in range(number):
            content = f"{at}\n{at * 7}\n"
            lines.append(
                f"commit refs/heads/{branch}\nauthor Ada <ada@example.com> {start + at * 3600} +0900\n"
                f"committer C <c@x> {start + at * 3600} +0900\ndata 1\nc\n"
                f"M 100644 inline file{at % 97}\ndata {len(content)}\n{content}\n"
            )
        self.git("fast-import", "--quiet", "--force", stdin="".join(lines).encode())

    def forget(self) -> None:
        """Sweeps away what no branch reaches, as a server does some time after a force push."""
        self.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        self.git("gc", "-q", "--prune=now")

    def logged(self, revisions: str = "HEAD") -> dict[str, tuple[int, int]]:
        """What `git log --numstat` itself says: additions and deletions by commit."""
        found, sha = dict[str, tuple[int, int]](), ""
        for line in self.git("log", "--numstat", "-M", "--format=commit %H", revisions).splitlines():
            if line.startswith("commit "):
                sha = line.removeprefix("commit ")
                found[sha] = (0, 0)
            elif line:
                added, deleted, _ = line.split("\t", 2)
                if added != "-":
                    found[sha] = (found[sha][0] + int(added), found[sha][1] + int(deleted))
        return found


def eventful(path: Path) -> Repository:
    """A repository with renames, merges, binaries, odd names, several authors, and Japanese and slashed branches."""
    made = Repository(path)
    made.commit("2026-01-05T10:00:00+09:00", {"a.txt": "".join(f"{n}\n" for n in range(60))})
    made.git("mv", "a.txt", "名前 の変更.txt")
    made.commit("2026-01-20T10:00:00+09:00", {"名前 の変更.txt": "".join(f"{n}\n" for n in range(61))}, author=JUN)
    made.commit("2026-02-01T00:30:00+09:00", {"picture.bin": bytes(range(256)) * 4}, author=GRACE)
    made.commit("2026-02-03T10:00:00+00:00", {"@odd": "1\n", "tab\there": "2\n", "line\nbreak": "3\n"}, author=GRACE)
    made.git("checkout", "-q", "-b", "feature/寿司")
    made.commit("2026-02-10T10:00:00+00:00", {"sushi.txt": "1\n2\n3\n"}, author=JUN)
    made.git("checkout", "-q", "main")
    made.commit("2026-02-12T10:00:00+00:00", {"a/b.txt": "x\n"}, message="subject\n\nbody @ of several\nlines")
    made.merge("feature/寿司", "2026-03-01T10:00:00+00:00")
    made.git("branch", "release/1.0#hot", "HEAD~1")
    made.commit("2026-03-02T10:00:00+00:00", message="empty")
    return made
