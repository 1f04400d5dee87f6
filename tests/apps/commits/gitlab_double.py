"""A GitLab for tests: a real HTTP server over real repositories, which can fail in every documented way.

It speaks version 4 of the REST API as documented: pages with `Link` and `X-Next-Page` headers and, for commits, without
totals; revision ranges as `ref_name`; statistics of merges against their first parent.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlsplit

TOKEN = "glpat-only-for-tests"  # noqa: S105 - it opens nothing but this double


@dataclass
class Fault:
    """Something that goes wrong for requests whose path has a text in it, so many times."""

    where: str
    status: int = 500
    times: int = 1_000_000
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"message": "it went wrong, says private@example.com"}'
    drop: bool = False


@dataclass
class Hosted:
    """A repository with the id and the path that the server gives it."""

    number: int
    path: str
    folder: Path
    default_branch: str = "main"


class GitLabDouble:
    """The server; `with GitLabDouble() as gitlab:` has it listen on a free port of the loopback."""

    def __init__(self, *, delay: float = 0.0) -> None:
        self.projects: dict[int, Hosted] = {}
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.delay = delay
        self.paging = "both"
        """Which headers tell of the next page: both, link, or none."""
        self.twist: Callable[[dict[str, Any]], dict[str, Any]] = lambda commit: commit
        """Changes a commit before it is sent."""
        self.endless: Callable[[], str] | None = None
        """Makes the body of every page, each of which names a next one."""
        self.hold = threading.Event()
        self.hold.set()
        double = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two writes: together with delayed acks they cost 40 ms

            def handle(self) -> None:
                with suppress(ConnectionError):  # whoever asked was killed: no reason for a traceback
                    super().handle()

            def do_GET(self) -> None:
                double.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the parameter there
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="gitlab-double", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def host(self, folder: Path, path: str = "", default_branch: str = "main") -> Hosted:
        number = 100 + len(self.projects)
        hosted = Hosted(number, path or f"team/{folder.name}", folder, default_branch)
        self.projects[number] = hosted
        return hosted

    def fail(self, where: str, status: int = 500, **how: Any) -> Fault:
        fault = Fault(where, status, **how)
        self.faults.append(fault)
        return fault

    def asked(self, text: str) -> list[str]:
        """The requests so far whose path, decoded, has a text in it."""
        return [path for path in self.requests if text in unquote(path)]

    # Answering

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        self.hold.wait(30)
        if self.delay:
            time.sleep(self.delay)
        for fault in self.faults:
            if fault.where in unquote(request.path) and fault.times > 0:
                fault.times -= 1
                if fault.drop:
                    request.close_connection = True
                    request.connection.close()
                    return
                self._send(request, fault.status, fault.body.encode(), fault.headers)
                return
        if self.endless is not None:
            page = int(dict(parse_qsl(urlsplit(request.path).query)).get("page", 1))
            self._send(request, 200, self.endless().encode(), {"X-Next-Page": str(page + 1)})
            return
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if TOKEN not in (request.headers.get("PRIVATE-TOKEN"), bearer):
            self._send(request, 401, b'{"message": "401 Unauthorized"}', {})
            return
        status, value, headers = self._found(urlsplit(request.path))
        self._send(request, status, json.dumps(value).encode(), headers)

    def _send(self, request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _found(self, url: Any) -> tuple[int, Any, dict[str, str]]:
        asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
        match [unquote(part) for part in url.path.removeprefix("/api/v4/").split("/")]:
            case ["user"]:
                return 200, {"id": 1, "username": "tester"}, {}
            case ["projects"]:
                return self._page([self._project(p) for p in self.projects.values()], url.path, asked)
            case ["projects", key, *rest]:
                hosted = next((p for p in self.projects.values() if key in (str(p.number), p.path)), None)
                return (
                    (404, {"message": "404 Project Not Found"}, {})
                    if hosted is None
                    else self._in(hosted, rest, url, asked)
                )
        return 404, {"message": "404 Not Found"}, {}

    def _in(self, hosted: Hosted, rest: list[str], url: Any, asked: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        match rest:
            case []:
                return 200, self._project(hosted), {}
            case ["repository", "branches"]:
                return self._page(self._branches(hosted), url.path, asked)
            case ["repository", "branches", name]:
                found = [branch for branch in self._branches(hosted) if branch["name"] == name]
                return (200, found[0], {}) if found else (404, {"message": "404 Branch Not Found"}, {})
            case ["repository", "commits"]:
                return self._commits(hosted, url.path, asked)
        return 404, {"message": "404 Not Found"}, {}

    def _project(self, hosted: Hosted) -> dict[str, Any]:
        name = hosted.path.rpartition("/")[2]
        more: dict[str, Any] = {"path_with_namespace": hosted.path, "default_branch": hosted.default_branch}
        more["empty_repo"] = not self._branches(hosted)
        return {"id": hosted.number, "name": name, **more}

    def _branches(self, hosted: Hosted) -> list[dict[str, Any]]:
        told = _git(hosted.folder, "for-each-ref", "--format=%(refname:lstrip=2)%00%(objectname)", "refs/heads")
        pairs = [line.split("\0") for line in told.splitlines()]
        return [{"name": name, "commit": {"id": sha, "parent_ids": []}} for name, sha in pairs]

    def _commits(self, hosted: Hosted, path: str, asked: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        page, size = int(asked.get("page", 1)), int(asked.get("per_page", 20))
        spans = [f"--since-as-filter={asked['since']}"] if "since" in asked else []
        spans += [f"--until={asked['until']}"] if "until" in asked else []
        cut = [f"--skip={(page - 1) * size}", f"--max-count={size + 1}"]
        how = ["--numstat", "-M", "--diff-merges=first-parent", "--format=%x01%H%x02%P%x02%an%x02%ae%x02%cI%x02%s%x03"]
        try:
            told = _git(hosted.folder, "log", *how, *cut, *spans, asked.get("ref_name") or hosted.default_branch, "--")
        except subprocess.CalledProcessError:
            return 404, {"message": "404 Commit Not Found"}, {}
        found = [self.twist(_commit(text)) for text in told.split("\x01")[1:]]
        if asked.get("with_stats", "").lower() != "true":
            found = [{name: value for name, value in commit.items() if name != "stats"} for commit in found]
        return 200, found[:size], self._headers(path, asked, page, size, more=len(found) > size)

    def _page(self, found: list[Any], path: str, asked: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        page, size = int(asked.get("page", 1)), int(asked.get("per_page", 20))
        more = len(found) > page * size
        return 200, found[(page - 1) * size : page * size], self._headers(path, asked, page, size, more=more)

    def _headers(self, path: str, asked: dict[str, str], page: int, size: int, *, more: bool) -> dict[str, str]:
        query = "&".join(f"{name}={quote(value)}" for name, value in {**asked, "page": str(page + 1)}.items())
        link = f'<{self.url}{path}?{query}>; rel="next"' if more else f'<{self.url}{path}>; rel="first"'
        following = {"X-Next-Page": str(page + 1) if more else "", "X-Page": str(page), "X-Per-Page": str(size)}
        return {"none": {}, "link": {"Link": link}, "both": {"Link": link, **following}}[self.paging]


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True)
    return done.stdout.decode(errors="replace")


def _commit(text: str) -> dict[str, Any]:
    head, _, numbers = text.partition("\x03")
    sha, parents, name, email, date, title = head.split("\x02")
    pairs = [line.split("\t") for line in numbers.splitlines() if "\t" in line]
    counted = [(int(pair[0]), int(pair[1])) for pair in pairs if pair[0] != "-" and len(pair) > 2]
    added, deleted = sum(a for a, _ in counted), sum(d for _, d in counted)
    return {
        "id": sha,
        "short_id": sha[:8],
        "title": title,
        "author_name": name,
        "author_email": email,
        "authored_date": date,
        "committed_date": date,
        "created_at": date,
        "parent_ids": parents.split(),
        "stats": {"additions": added, "deletions": deleted, "total": added + deleted},
    }
