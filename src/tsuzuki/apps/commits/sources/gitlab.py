"""GitLab by its REST API, version 4: projects, branches, and commits with their figures."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from tsuzuki.apps.commits.records import Branch, Commit, FoundProject, Span
from tsuzuki.apps.commits.refusals import HeadGone, SourceFailure
from tsuzuki.apps.commits.sources.asking import Asking, Patience
from tsuzuki.apps.commits.times import utc
from tsuzuki.errors import BadUsage

PAGE: Final = 100
_NEXT: Final = re.compile(r'<([^<>]*+)>;\s*rel="?next"?')


class GitLabSource:
    """One GitLab server, as its token sees it."""

    cheap = False

    def __init__(self, address: str, token: str | None, patience: Patience | None = None) -> None:
        self._asking = Asking(f"{address.rstrip('/')}/api/v4", token, patience or Patience())

    async def check(self) -> None:
        """Raise where the server does not answer as a GitLab does, or refuses the token."""
        async for _ in self._projects():
            return

    async def projects(self) -> list[FoundProject]:
        """Lists the projects that the token's owner is a member of; without a token, those that are public."""
        return [_project(found) async for page in self._projects() for found in page]

    async def _projects(self) -> AsyncIterator[list[dict[str, Any]]]:
        asked = {"simple": "true", "order_by": "id", "sort": "asc"} | (
            {"membership": "true"} if self._asking.known else {}
        )
        try:
            async for page in self._pages("/projects", asked):
                yield page
        except SourceFailure as failure:
            if (
                failure.cause == "not_found"
            ):  # every GitLab lists projects: the address is that of a page, or of another
                raise SourceFailure("answer", "HTTP 404") from None
            raise

    async def project(self, key: str) -> FoundProject:
        """Gives one project by its id or its full path."""
        found, _ = await self._asking.get(f"/projects/{quote(key, safe='')}")
        return _project(found)

    async def branches(self, project: str) -> list[Branch]:
        """Lists the branches of a project."""
        pages = self._pages(f"/projects/{quote(project, safe='')}/repository/branches", {})
        return [_branch(found) async for page in pages for found in page]

    async def head(self, project: str, branch: str) -> str:
        """Gives the commit that a branch points to."""
        place = f"/projects/{quote(project, safe='')}"
        try:
            found, _ = await self._asking.get(f"{place}/repository/branches/{quote(branch, safe='')}")
        except SourceFailure as failure:
            if failure.cause != "not_found":
                raise
            known, _ = await self._asking.get(place)  # it raises where the project itself is not there
            empty = isinstance(known, dict) and known.get("empty_repo") is True
            raise SourceFailure("empty" if empty else "no_branch", "" if empty else f"{branch}, HTTP 404") from None
        return _branch(found).head_sha

    async def commits(self, project: str, span: Span) -> AsyncIterator[list[Commit]]:
        """Lists commits by the id of the head, so that pages stand still while people push."""
        name = span.head if span.after is None else f"{span.after}..{span.head}"
        asked = {"ref_name": name, "with_stats": "true"}
        asked |= {"since": span.since} if span.since else {}
        asked |= {"until": span.until} if span.until else {}
        seen = 0
        try:
            async for page in self._pages(f"/projects/{quote(project, safe='')}/repository/commits", asked):
                seen += len(page)
                yield [_commit(found) for found in page]
        except SourceFailure as failure:
            if span.after is not None and failure.cause == "not_found":
                raise HeadGone(span.after) from None
            raise
        if span.after is not None and not seen:  # the head has moved, so there should be some: the old one is unknown
            raise HeadGone(span.after)

    async def left_behind(self, project: str, span: Span) -> list[str]:
        """Lists what only the older head reaches."""
        asked = {"ref_name": f"{span.head}..{span.after}"}
        pages = self._pages(f"/projects/{quote(project, safe='')}/repository/commits", asked)
        return [_commit(found).sha async for page in pages for found in page]

    async def whole(self, project: str) -> bool:
        """A server has all of it."""
        del project
        return True

    async def close(self) -> None:
        """Closes the connections."""
        await self._asking.close()

    async def _pages(self, path: str, asked: Mapping[str, str]) -> AsyncIterator[list[dict[str, Any]]]:
        """Follows pages by what their headers say; where they say nothing, until one is not full."""
        page: int | None = 1
        last: list[dict[str, Any]] | None = None
        followed = 0
        while page is not None:
            followed += 1
            if followed > self._asking.most_pages:
                raise SourceFailure("size", f"more than {self._asking.most_pages} pages")
            found, headers = await self._asking.get(path, {**asked, "per_page": str(PAGE), "page": str(page)})
            # A server that names one more page for ever would be asked for ever.
            if not isinstance(found, list) or (last is not None and found and found == last):
                raise SourceFailure("answer")
            yield found
            last, page = found, _after(page, len(found), headers)


def server_address(text: str) -> str:
    """Gives the address of a server as it is kept: without a slash at its end, and never with a secret in it."""
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise BadUsage(
            "GitLab の URL は http:// または https:// で始めてください / "
            "the address of a GitLab server is like https://gitlab.example.com"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadUsage(
            "URL にトークンやパスワードを含めず、トークンとして渡してください / "
            "the address of a server has no token, password, ? or # in it: hand the token over as a token"
        )
    path = parts.path.rstrip("/").removesuffix("/api/v4").rstrip("/")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def _after(page: int, number: int, headers: Mapping[str, str]) -> int | None:
    """Says which page comes next, if one does. GitLab sends no totals for commits, hence none are looked at."""
    following: int | None = page + 1 if number >= PAGE else None
    if (said := headers.get("x-next-page")) is not None:
        following = _number(said.strip()) if said.strip() else None
    elif (link := headers.get("link")) is not None:
        following = page + 1 if _NEXT.search(link) else None
    if following is not None and (following <= page or not number):  # nothing is there, but more shall come
        raise SourceFailure("answer")
    return following


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise SourceFailure("answer")
    return int(text)


def _project(found: Any) -> FoundProject:
    try:
        name = found.get("path_with_namespace") or found["name"]
        return FoundProject(str(found["id"]), name, found.get("default_branch") or "")
    except (AttributeError, KeyError, TypeError):
        raise SourceFailure("answer") from None


def _branch(found: Any) -> Branch:
    try:
        return Branch(found["name"], found["commit"]["id"])
    except (KeyError, TypeError):
        raise SourceFailure("answer") from None


def _text(found: Any) -> str:
    """Gives a text that every database takes: JSON may have halves of signs in it."""
    return str(found or "").encode(errors="replace").decode()


def _commit(found: Any) -> Commit:
    """Reads a commit; without figures it has zeros and says so, without an address an empty one."""
    try:
        stats = found.get("stats") or {}
        return Commit(
            found["id"],
            _text(found.get("author_name")),
            _text(found.get("author_email")),
            utc(found.get("committed_date") or found["created_at"]),
            int(stats.get("additions") or 0),
            int(stats.get("deletions") or 0),
            int(len(found.get("parent_ids") or ()) > 1),
            int("additions" in stats and "deletions" in stats),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SourceFailure("answer") from None
