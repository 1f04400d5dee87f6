"""Local git, through the git command and without a shell: everything works offline on any repository.

A repository may come from anybody, and its configuration can name programs. Settings that override it keep git from
running any of them and from fetching. Git discovers the repository itself, so that its own check of the owner applies
(`safe.directory`).
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from tsuzuki import settings
from tsuzuki.apps.commits.records import Branch, Commit, FoundProject, Span
from tsuzuki.apps.commits.refusals import HeadGone, SourceFailure
from tsuzuki.apps.commits.times import of_seconds

KEY: Final = "."
"""The one project of a repository."""
_CHUNK: Final = 1 << 20
_BATCH: Final = 2000
_FORMAT: Final = "@%H%x00%P%x00%an%x00%ae%x00%ct"
_FIELDS: Final = 5
_SHA: Final = re.compile(r"[0-9a-f]{40,64}")
_SETTINGS: Final = tuple(
    word
    for setting in (
        # What must run nothing, whatever the repository says.
        "core.alternateRefsCommand=false",
        "core.askPass=",
        "core.attributesFile=",
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.pager=cat",
        "core.sshCommand=false",
        "credential.helper=",
        "diff.external=",
        "gpg.program=false",
        "protocol.allow=never",
        # What must change no figure.
        "core.quotePath=false",
        "i18n.logOutputEncoding=UTF-8",
        "log.showSignature=false",
        "log.showRoot=true",
        "core.bigFileThreshold=512m",
        "diff.context=3",
        "diff.ignoreSubmodules=none",
        "diff.indentHeuristic=true",
        "diff.interHunkContext=0",
        "diff.orderFile=/dev/null",
        "diff.renameLimit=0",
        "diff.relative=false",
    )
    for word in ("-c", setting)
)
_ENVIRONMENT: Final = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_THEIRS: Final = frozenset({"system", "global"})
_FOREIGN: Final = b"dubious ownership"
_MOST_SAID: Final = 4096


class GitSource:
    """One local repository."""

    cheap = True

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._git_dir: Path | None = None
        self._cut: frozenset[str] | None = None
        self._trusted: list[str] | None = None

    async def projects(self) -> list[FoundProject]:
        """Gives the repository itself, under the name of its folder."""
        place = self._place()
        folder = _folder(place)
        # The short form would say `heads/main` where a tag is called main too.
        head = await self._said("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
        branch = head.strip().removeprefix("refs/heads/")
        return [FoundProject(KEY, folder.resolve().name.removesuffix(".git"), branch)]

    async def branches(self, project: str) -> list[Branch]:
        """Lists the local branches."""
        del project
        told = await self._said("for-each-ref", "--format=%(refname)%00%(objectname)", "refs/heads")
        pairs = [line.split("\0") for line in told.splitlines()]
        return [Branch(name.removeprefix("refs/heads/"), sha) for name, sha in pairs]

    async def head(self, project: str, branch: str) -> str:
        """Resolves a local branch, else one of a remote (`origin/main`), else HEAD by its name."""
        del project
        # Names are taken as they are: rev-parse would take `main~3` for a branch, too.
        named = [("show-ref", "--verify", "--hash", f"refs/{place}/{branch}") for place in ("heads", "remotes")]
        for question in [("rev-parse", "--verify", "--quiet", "HEAD^{commit}")] if branch == "HEAD" else named:
            sha = (await self._said(*question, ok=(0, 1, 128))).strip()
            if _SHA.fullmatch(sha):
                return sha
        if not (await self._said("for-each-ref", "--count=1", "refs/heads", "refs/remotes")).strip():
            raise SourceFailure("empty")
        raise SourceFailure("no_branch", branch)

    async def commits(self, project: str, span: Span) -> AsyncIterator[list[Commit]]:
        """Reads `git log --numstat -z` as it comes."""
        del project
        if span.after is not None and not await self._has(span.after):
            raise HeadGone(span.after)
        revisions = span.head if span.after is None else f"{span.after}..{span.head}"
        dates = [f"--since-as-filter={span.since}"] if span.since else []
        dates += [f"--until={span.until}"] if span.until else []
        log = ("log", "--numstat", "-z", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature")
        arguments = (*log, "--diff-algorithm=myers", f"--format={_FORMAT}", *dates, revisions, "--")
        edge = await self._edge()
        async with self._started(*arguments) as process:
            assert process.stdout is not None  # noqa: S101 - it was asked for
            reader, batch = LogReader(edge), list[Commit]()
            while chunk := await process.stdout.read(_CHUNK):
                batch += reader.feed(chunk)
                if len(batch) >= _BATCH:
                    yield batch
                    batch = []
            await self._checked(process)
            yield batch + reader.end()

    async def left_behind(self, project: str, span: Span) -> list[str]:
        """Lists what only the older head reaches."""
        del project
        return (await self._said("rev-list", f"{span.head}..{span.after}", "--")).split()

    async def whole(self, project: str) -> bool:
        """A shallow clone has not all of it."""
        del project
        return not await self._edge()

    async def close(self) -> None:
        """Holds nothing."""

    async def _edge(self) -> frozenset[str]:
        """Gives the commits at which a shallow clone is cut off: git takes their whole tree for what they added."""
        if self._cut is None:
            file = (await self._said("rev-parse", "--git-path", "shallow")).strip()
            self._cut = await asyncio.to_thread(_words_of, _folder(self._place()) / file)
        return self._cut

    async def _has(self, sha: str) -> bool:
        async with self._started("cat-file", "-e", f"{sha}^{{commit}}") as process:
            await process.communicate()
            return process.returncode == 0

    async def _said(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
        async with self._started(*arguments) as process:
            assert process.stdout is not None  # noqa: S101 - it was asked for
            told = await process.stdout.read()
            await self._checked(process, ok)
            return told.decode(errors="replace")

    async def _checked(self, process: asyncio.subprocess.Process, ok: tuple[int, ...] = (0,)) -> None:
        if await process.wait() not in ok:
            await self._refuse_foreign()
            raise SourceFailure("git", f"git ended with {process.returncode}")

    async def _refuse_foreign(self) -> None:
        async with self._started("rev-parse", "--git-dir", stderr=asyncio.subprocess.PIPE) as process:
            assert process.stderr is not None  # noqa: S101 - it was asked for
            if _FOREIGN in await process.stderr.read(_MOST_SAID):
                raise SourceFailure("owner")

    @contextlib.asynccontextmanager
    async def _started(
        self, *arguments: str, stderr: int = asyncio.subprocess.DEVNULL
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Starts git; it never outlives the block."""
        folder = _folder(self._place())
        if self._trusted is None:
            self._trusted = await _trusted()
        # Above the folder it must not look: what it found there would be another repository.
        variables = (
            settings.environment(without="GIT_") | _ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        )
        command = ("git", "-C", str(folder), "--no-pager", *_SETTINGS, *self._trusted, *arguments)
        async with _process(*command, env=variables, stderr=stderr) as process:
            yield process

    def _place(self) -> Path:
        if self._git_dir is None:
            self._git_dir = repository(self._path)
        return self._git_dir


@contextlib.asynccontextmanager
async def _process(
    *command: str, env: dict[str, str], stderr: int = asyncio.subprocess.DEVNULL
) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=stderr, env=env)
    except OSError as error:
        raise SourceFailure("git", f"git cannot be started: {error.strerror}") from None
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()


async def _trusted() -> list[str]:
    """Return the folders that the user trusts (`safe.directory`) as options; no other setting of theirs counts."""
    command = ("git", "-C", "/", "config", "--show-scope", "--null", "--get-all", "safe.directory")
    async with _process(*command, env=settings.environment(without="GIT_", but="GIT_CONFIG")) as process:
        said = (await process.communicate())[0].decode(errors="surrogateescape").split("\0")
    pairs = zip(said[::2], said[1::2], strict=False)
    return [word for scope, value in pairs if scope in _THEIRS for word in ("-c", f"safe.directory={value}")]


def _folder(place: Path) -> Path:
    """Return the folder in which git finds a repository."""
    return place.parent if place.name == ".git" else place


def _words_of(file: Path) -> frozenset[str]:
    return frozenset(file.read_text().split()) if file.is_file() else frozenset()


def repository(path: Path) -> Path:
    """Finds the repository that a folder belongs to, as git does: `.git` here or above, or a bare one."""
    if "\0" in str(path):
        raise SourceFailure("git", "no path has such a sign in it")
    folder = path.expanduser().resolve()  # one repository has one name, by whatever way one comes to it
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place / ".git"
        if (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir():
            return place
    raise SourceFailure("git", f"no repository at {path.name or path}")


def whole_repository(path: Path) -> Path:
    """Finds the repository that a folder belongs to; a further working tree (`git worktree`) belongs to its own."""
    place = repository(path)
    if place.is_file():
        own = place.parent / place.read_text(errors="replace").removeprefix("gitdir:").strip()
        with contextlib.suppress(OSError):  # a submodule has none
            return (own / (own / "commondir").read_text().strip()).resolve()
    return place


async def checked_out(path: Path) -> str:
    """Names the branch that is checked out in a further working tree; of a whole repository its project knows it."""
    if whole_repository(path) == repository(path):
        return ""
    (project,) = await GitSource(str(path)).projects()
    if not project.default_branch:
        raise SourceFailure("no_branch", "none is checked out here: name one")
    return project.default_branch


class LogReader:
    """Reads the output of `git log` piece by piece.

    A commit is five fields that end in NUL, the first with an @ before it, then its files: `added TAB deleted TAB
    path`, or for a rename an empty path and two more fields. A line of numbers never begins with @, and the paths of
    a rename are taken by count, so no name of a file can be mistaken for a commit.
    """

    def __init__(self, edge: frozenset[str] = frozenset()) -> None:
        self._edge = edge
        self._rest = b""
        self._head: list[str] = []
        self._wanted = 0
        self._paths = 0
        self._added = 0
        self._deleted = 0

    def feed(self, chunk: bytes) -> list[Commit]:
        """Takes a piece; gives the commits that are whole."""
        *fields, self._rest = (self._rest + chunk).split(b"\0")
        return list(self._read(fields))

    def end(self) -> list[Commit]:
        """Gives the last commit."""
        found = list(self._read([self._rest] if self._rest else []))
        return [*found, *self._whole()]

    def _read(self, fields: list[bytes]) -> Iterator[Commit]:
        for field in fields:
            if self._wanted:
                self._wanted -= 1
                self._head.append(field.decode(errors="replace"))
            elif self._paths:
                self._paths -= 1
            elif field.startswith(b"@"):
                yield from self._whole()
                self._head, self._wanted = [field[1:].decode()], _FIELDS - 1
                self._added = self._deleted = 0
            elif field:
                self._count(field)

    def _count(self, field: bytes) -> None:
        added, deleted, path = field.lstrip(b"\n").split(b"\t", 2)
        if added != b"-":  # a binary file has no lines
            self._added += int(added)
            self._deleted += int(deleted)
        if not path:
            self._paths = 2

    def _whole(self) -> Iterator[Commit]:
        if self._head:
            sha, parents, name, email, seconds = self._head
            whole = sha not in self._edge
            added, deleted = (self._added, self._deleted) if whole else (0, 0)
            when, merge = of_seconds(int(seconds)), int(" " in parents)
            yield Commit(sha, name, email, when, added, deleted, merge, int(whole))
            self._head = []
