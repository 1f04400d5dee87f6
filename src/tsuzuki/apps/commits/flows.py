"""The flows: collect some branches of a project, or go on with every branch that has a history."""

import asyncio
import contextlib
from typing import Any, Final

from tsuzuki import current, flow, task
from tsuzuki.apps.commits.bulkruns import BulkRuns
from tsuzuki.apps.commits.collecting import collect, open_sources, why
from tsuzuki.apps.commits.gathering import known_outcome, record_failure
from tsuzuki.apps.commits.ledger import Ledger, ledger_of
from tsuzuki.apps.commits.records import Settled, Target
from tsuzuki.apps.commits.refusals import SourceFailure, TargetFailed
from tsuzuki.errors import TsuzukiError

BULK_KEY: Final = "commits:bulk"
PROJECT_KEY: Final = "commits:project:{}"


def _ledger() -> Ledger:
    """Gives the ledger of the tenant that this run belongs to; no param can say another."""
    return ledger_of(current().tenant)


@task(name="collect_target")
async def collect_target(target: Target, pause: float = 0.0) -> int:
    """Collects one target of a bulk run; gives the number of new commits.

    What this run has settled already is returned as it is, and nobody is asked: after a crash between the
    application's transaction and the engine's fact nothing is repeated.
    """
    ledger, run_id = _ledger(), current().run_id
    known = await asyncio.to_thread(known_outcome, ledger, run_id, target, bulk=True)
    if known is None:
        await asyncio.sleep(pause)
        known = await _settled(ledger, run_id, target)
    if known.new_commits_count is None:
        raise TargetFailed(known.error_message)
    return known.new_commits_count


async def _settled(ledger: Ledger, run_id: str, target: Target) -> Settled:
    try:
        return await collect(ledger, target, run_id, bulk=True)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong with a target, the others go on
        message = why(error)
        if not isinstance(error, SourceFailure):
            current().log.exception("%s", target)
        with contextlib.suppress(TsuzukiError):  # if it cannot even be written down, the last step will try again
            return await asyncio.to_thread(record_failure, ledger, run_id, target, message)
        return Settled("failed", None, message)


@task(name="close_bulk_run")
def close_bulk_run() -> dict[str, int]:
    """Closes the row of a bulk run."""
    summary = BulkRuns(_ledger()).complete(current().run_id)
    return {"total": summary.total_targets, "success": summary.success_count, "failed": summary.failed_count}


@flow(name="commits_bulk", key=BULK_KEY)
async def bulk(retry_of: str = "", pause: float = 0.1, concurrency: int = 1) -> dict[str, int]:
    """Goes on with every branch that has a history, or with those that failed in another bulk run."""
    ledger = _ledger()
    targets = await asyncio.to_thread(BulkRuns(ledger).open, current().run_id, retry_of)
    async with open_sources(ledger, current().tenant):
        await collect_target.map(
            targets, concurrency=concurrency, key=str, on_error="collect", keep_results=False, pause=pause
        )
    return await close_bulk_run.step()


@task(name="collect_branch")
async def collect_branch(target: Target, since: str | None = None, until: str | None = None) -> int:
    """Collects one branch; gives the number of new commits."""
    ledger, run_id = _ledger(), current().run_id
    known = await asyncio.to_thread(known_outcome, ledger, run_id, target, bulk=False)
    if known is None:
        try:
            known = await collect(ledger, target, run_id, bulk=False, since=since, until=until)
        except Exception as error:
            if not isinstance(error, SourceFailure):
                current().log.exception("%s", target)
            raise TargetFailed(why(error)) from error
    return known.new_commits_count or 0


@flow(name="commits_collect", key=PROJECT_KEY.format("{project_id}"))
async def collect_project(
    project_id: int, branches: list[str], since: str | None = None, until: str | None = None, concurrency: int = 1
) -> dict[str, Any]:
    """Collects branches of a project; gives the new commits of each, and why a branch failed."""
    ledger = _ledger()
    targets = [Target(project_id, name) for name in dict.fromkeys(branches)]
    async with open_sources(ledger, current().tenant):
        done = await collect_branch.map(
            targets, concurrency=concurrency, key=str, on_error="collect", since=since, until=until
        )
    pairs = list(zip(targets, done, strict=True))
    new = {target.branch_name: count for target, count in pairs if isinstance(count, int)}
    failed = {target.branch_name: f.error for target, f in pairs if not isinstance(f, int)}
    return {"project_id": project_id, "new_commits": new, "failed": failed}


def flows() -> list[Any]:
    """Gives the flows of this application."""
    return [bulk, collect_project]
