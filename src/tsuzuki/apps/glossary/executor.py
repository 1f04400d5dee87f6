"""PipelineExecutor: the steps of each scope, over one project; what a step found is saved as a whole when it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from tsuzuki import llm
from tsuzuki.apps.glossary import japanese, loglines
from tsuzuki.apps.glossary.asking import Asked, CancelEvent, SilenceWatch, is_set, told
from tsuzuki.apps.glossary.documents import read_folder
from tsuzuki.apps.glossary.extracting import TermExtractor
from tsuzuki.apps.glossary.generating import GlossaryGenerator, Subjects
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.records import Glossary, GlossaryIssue, PipelineScope
from tsuzuki.apps.glossary.refining import GlossaryRefiner, with_former
from tsuzuki.apps.glossary.refusals import PipelineCancelledException
from tsuzuki.apps.glossary.reviewing import REVIEW_BATCH_SIZE, GlossaryReviewer, batch_size
from tsuzuki.apps.saving import saved

P = ParamSpec("P")
R = TypeVar("R")
Note = tuple[str, str]
"""What a run could not do, in Japanese and English."""


@dataclass(frozen=True)
class ExecutionContext:
    """What belongs to one execution: its run, who is told, and what says that it is to end."""

    run_id: int
    log_callback: Callable[[dict[str, Any]], None]
    cancel_event: CancelEvent


def cancellable(
    step: Callable[Concatenate["PipelineExecutor", ProjectFile, ExecutionContext, P], Awaitable[R]],
) -> Callable[Concatenate["PipelineExecutor", ProjectFile, ExecutionContext, P], Awaitable[R]]:
    """Makes a step look whether the run is to end before it begins."""

    async def checked(
        self: "PipelineExecutor", project: ProjectFile, context: ExecutionContext, /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        check_cancellation(context)
        return await step(self, project, context, *args, **kwargs)

    return checked


def check_cancellation(context: ExecutionContext) -> None:
    """Ends here where the run is to end."""
    if is_set(context.cancel_event):
        raise PipelineCancelledException


class PipelineExecutor:
    """Carries out scopes; one executor may carry out several at once, each with its own context."""

    def __init__(
        self,
        address: "llm.Address | None" = None,
        *,
        review_batch_size: int = REVIEW_BATCH_SIZE,
        debug_dir: str = "",
    ) -> None:
        self._asked = Asked.of(address or llm.Address())
        self._size = batch_size(review_batch_size)  # refused here, before anything is asked and paid for
        self._debug = debug_dir

    async def execute(
        self, project: ProjectFile, scope: str | PipelineScope, context: ExecutionContext, doc_root: str = "."
    ) -> str:
        """Carry out a scope and return what it could not do, "" where nothing was left out.

        Raises `PipelineCancelledException` where the run is to end.
        """
        steps = {
            PipelineScope.FULL: self._full,
            PipelineScope.EXTRACT: self._extract,
            PipelineScope.GENERATE: self._generate,
            PipelineScope.REVIEW: self._review,
            PipelineScope.REFINE: self._refine,
        }
        step = steps[PipelineScope(scope)]
        if PipelineScope(scope) is not PipelineScope.REVIEW:
            await asyncio.to_thread(self._load_documents, project, doc_root, context)
        self._log(context, "info", self._answering())
        notes = await step(project, context)
        if not notes:
            return ""
        left_out = f"{'。'.join(note[0] for note in notes)} / {'; '.join(note[1] for note in notes)}"
        self._log(context, "warning", left_out)
        return left_out

    def _load_documents(self, project: ProjectFile, doc_root: str, context: ExecutionContext) -> None:
        """Takes the documents that are stored; where there are none, those of the folder, which are stored."""
        if project.documents.list():
            return
        if doc_root not in ("", "."):
            found, skipped = read_folder(Path(doc_root))
            for each in skipped:
                self._log(context, "warning", f"left out: {each}")
            if found:
                project.documents.add(found, from_folder=True)
                return
        raise RuntimeError("Cannot execute pipeline without documents")

    # Scopes

    @cancellable
    async def _full(self, project: ProjectFile, context: ExecutionContext) -> list[Note]:
        subjects = await self._subjects(project, "Cannot execute full pipeline without extracted terms")
        glossary, undefined = await self._do_generate(project, context, subjects)
        issues, unreviewed = await self._do_review(project, context, glossary)
        return undefined + unreviewed + await self._do_refine(project, context, glossary, issues, subjects)

    @cancellable
    async def _extract(self, project: ProjectFile, context: ExecutionContext) -> list[Note]:
        terms = project.terms
        extractor = TermExtractor(
            self._asked,
            excluded=terms.excluded.texts(),
            required=terms.required.texts(),
            former=terms.stored(),
            debug=self._debug,
        )
        with self._telling(context, "extract") as tell:
            found = await extractor.extract_terms(
                project.documents.each,
                project.documents.digest(),
                context.cancel_event,
                lambda done, total: tell(done, total, ""),
            )
        check_cancellation(context)
        await saved(terms.become, found.terms, found.common_nouns, context.run_id)
        count, common = len(found.terms), len(found.common_nouns)
        found_out = f"用語 {count} 件（一般名詞 {common} 件を除外） / {count} terms, {common} common nouns left out"
        self._log(context, "info", found_out)
        if unaided := japanese.unaided(term.term_text for term in found.terms):
            self._log(context, "warning", unaided)
        left = found.unclassified
        return (
            [(f"候補 {left} 件を分類できませんでした", f"{_count(left, 'candidate')} could not be classified")]
            if left
            else []
        )

    @cancellable
    async def _generate(self, project: ProjectFile, context: ExecutionContext) -> list[Note]:
        subjects = await self._subjects(project, "Cannot execute generate without extracted terms")
        return (await self._do_generate(project, context, subjects))[1]

    @cancellable
    async def _review(self, project: ProjectFile, context: ExecutionContext) -> list[Note]:
        return (await self._do_review(project, context, self._provisional(project, "review")))[1]

    @cancellable
    async def _refine(self, project: ProjectFile, context: ExecutionContext) -> list[Note]:
        glossary = self._provisional(project, "refine")
        subjects = await asyncio.to_thread(Subjects.of, project)
        return await self._do_refine(project, context, glossary, project.issues.list(), subjects)

    # Steps

    @cancellable
    async def _do_generate(
        self, project: ProjectFile, context: ExecutionContext, subjects: Subjects
    ) -> tuple[Glossary, list[Note]]:
        generator = GlossaryGenerator(self._asked, debug=self._debug)
        before = project.provisional
        with self._telling(context, "provisional") as tell:
            glossary = await generator.generate(
                subjects, context.cancel_event, tell, before.by_person(), before.named()
            )
        check_cancellation(context)
        # From here on only the write is awaited: finished work is saved, whatever is asked meanwhile.
        await saved(project.provisional.become, glossary.entries, context.run_id)
        count = glossary.term_count
        self._log(context, "info", f"定義 {count} 件 / {count} definitions")
        notes: list[Note] = []
        if failed := generator.failed:
            kept, left = generator.kept, failed - generator.kept
            notes = [
                (
                    f"用語 {failed} 件を定義できませんでした（前の定義のまま {kept} 件、除外 {left} 件）",
                    f"{_count(failed, 'term')} could not be defined: {kept} kept, {left} left out",
                )
            ]
        return Glossary(project.provisional.list()), notes

    @cancellable
    async def _do_review(
        self, project: ProjectFile, context: ExecutionContext, glossary: Glossary
    ) -> tuple[list[GlossaryIssue], list[Note]]:
        reviewer = GlossaryReviewer(
            self._asked, review_batch_size=self._size, notes=project.terms.notes(), debug=self._debug
        )
        try:
            with self._telling(context, "issues") as tell:
                issues = await reviewer.review(
                    glossary, context.cancel_event, lambda done, total: tell(done, total, "")
                )
        except asyncio.CancelledError:
            self._log(context, "info", "Review cancelled")
            raise
        if issues is None:
            self._log(context, "info", "Review cancelled")
            raise PipelineCancelledException
        await saved(project.issues.become, issues, context.run_id)
        self._log(context, "info", f"指摘 {len(issues)} 件 / {len(issues)} issues")
        left = reviewer.unreviewed
        return issues, (
            [(f"{left} 件をレビューできませんでした", f"{_count(left, 'entry')} could not be reviewed")] if left else []
        )

    @cancellable
    async def _do_refine(
        self,
        project: ProjectFile,
        context: ExecutionContext,
        glossary: Glossary,
        issues: list[GlossaryIssue],
        subjects: Subjects,
    ) -> list[Note]:
        refined = glossary
        former = project.refined.named()
        failed: set[str] = set()
        with self._telling(context, "refined") as tell:
            if issues:
                refiner = GlossaryRefiner(self._asked, required=project.terms.required.texts(), debug=self._debug)
                refined = await refiner.refine(glossary, issues, subjects, context.cancel_event, tell)
                failed = refiner.failed
                check_cancellation(context)
            else:
                tell(glossary.term_count, glossary.term_count, "")
        refined = with_former(refined, former, failed)
        await saved(project.refined.become, refined.entries, context.run_id)
        count = refined.term_count
        self._log(context, "info", f"最終用語集 {count} 件 / {count} refined entries")
        left = len(failed)
        return [(f"{left} 件を改善できませんでした", f"{_count(left, 'entry')} could not be refined")] if left else []

    # What steps need

    async def _subjects(self, project: ProjectFile, missing: str) -> Subjects:
        if not project.terms.list():
            raise RuntimeError(missing)
        return await asyncio.to_thread(Subjects.of, project)

    def _provisional(self, project: ProjectFile, scope: str) -> Glossary:
        terms = project.terms
        excluded = set(terms.excluded.texts()) - set(terms.required.texts())
        glossary = Glossary([entry for entry in project.provisional.list() if entry.term_name not in excluded])
        if not glossary.entries:
            raise RuntimeError(f"Cannot execute {scope} without provisional glossary")
        return glossary

    @contextmanager
    def _telling(self, context: ExecutionContext, step: str) -> Iterator[Callable[[int, int, str], None]]:
        """Give what takes the progress of a step; the log says when a model is silent meanwhile."""
        with SilenceWatch(self._asked, lambda text: self._log(context, "warning", text)) as watch:

            def tell(done: int, total: int, term: str) -> None:
                watch.heard()
                self._tell(context, loglines.progress(context.run_id, step, done, total, term))

            yield tell

    def _answering(self) -> str:
        """Say who answers."""
        if self._asked.provider == "offline":
            return (
                "言語モデルは設定されていません。規則だけで処理します / no language model is set: offline rules answer"
            )
        who, timeout = self._asked.shown, self._asked.timeout
        return f"{who} に問い合わせます（1 回最大 {timeout:g} 秒） / asking {who}, at most {timeout:g} s for an answer"

    def _log(self, context: ExecutionContext, level: str, message: str) -> None:
        self._tell(context, loglines.entry(context.run_id, level, message))

    def _tell(self, context: ExecutionContext, entry: dict[str, Any]) -> None:
        told(context.log_callback, entry)


def _count(number: int, word: str) -> str:
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"
