"""RunManager: the runs of one project for synchronous callers, who know it by the path of its file."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Final, TypeVar

from tsuzuki import Runs
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.refusals import BadValue, NotThere
from tsuzuki.apps.glossary.registry import FOLDER

Result = TypeVar("Result")
_FILE: Final = re.compile(r"project-(\d+)\.db")


class RunManager:
    """Starts and cancels the runs of one project; workers carry them out, as those of every other caller.

    It keeps the path and never a connection, so that it may be used from any thread.
    """

    def __init__(
        self,
        db_path: str,
        doc_root: str = ".",
        llm_provider: str = "ollama",
        llm_model: str = "",
        llm_base_url: str = "",
    ) -> None:
        self.db_path = db_path
        self.doc_root = doc_root
        self.llm_provider = llm_provider
        self.llm_model = llm_model
        self.llm_base_url = llm_base_url

    def start_run(self, scope: str, triggered_by: str = "api") -> int:
        """Start a run and return its id; raise `RuntimeError` while another one is active.

        The documents and the model of this manager become those of the project.
        """

        async def start(desk: Desk, number: int) -> int:
            chosen = {name: getattr(self, name) for name in ("llm_provider", "llm_model", "llm_base_url")}
            folder = {} if self.doc_root in ("", ".") else {"doc_root": self.doc_root}
            desk.change_project(number, {**chosen, **folder})
            return (await desk.start(number, scope, triggered_by)).id

        return self._at_desk(start)

    def cancel_run(self, run_id: int) -> None:
        """Cancel a run; one that has ended or does not exist is left alone."""

        async def cancel(desk: Desk, number: int) -> None:
            with suppress(NotThere):
                await desk.cancel(number, run_id)

        self._at_desk(cancel)

    def _at_desk(self, work: Callable[[Desk, int], Awaitable[Result]]) -> Result:
        file = Path(self.db_path).resolve()
        named = _FILE.fullmatch(file.name)
        if named is None or file.parent.name != FOLDER:
            raise BadValue(f"{file.name} is not the file of a project. Give the path of {FOLDER}/project-N.db")
        data_dir, number = file.parent.parent, int(named[1])

        async def working() -> Result:
            async with Runs.open(data_dir=str(data_dir)) as runs:
                return await work(Desk(runs, runs.submit, folder=data_dir), number)

        with ThreadPoolExecutor(1) as thread:  # the caller's own thread may have an event loop already
            return thread.submit(copy_context().run, asyncio.run, working()).result()
