"""The routes of dead letters: runs that failed, kept for those who look after the system."""

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from tsuzuki.backends import DeadLetter
from tsuzuki.errors import BadRequest, LetterNotFound
from tsuzuki.gateway import cursors
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.models import Accepted, DroppedLetter, Letter, LetterPage
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.letters import Letters

router: Final = APIRouter(tags=["dead letters"])

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_CURSOR: Final = re.compile(r"[0-9]{1,18}")
LetterId = Annotated[str, Path(max_length=256, description="The id of a dead letter.")]


@router.get("/dlq", summary="List dead letters", response_model=LetterPage, responses=problems())
async def list_letters(
    session: InSession,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many.")] = 100,
    cursor: Annotated[str | None, Query(max_length=256, description="`next_cursor` of the page before.")] = None,
) -> Response:
    """Lists dead letters, the newest first."""
    if cursor and not _CURSOR.fullmatch(cursor):
        raise cursors.refused(BadRequest)
    letters = await Letters(session.runs).list(limit=limit + 1, before=cursor or None, tenant=session.tenant)
    page = letters[:limit]
    more = page[-1].id if len(letters) > limit else None
    return answer({"items": [_shown(letter) for letter in page], "next_cursor": more})


@router.get("/dlq/{letter_id}", summary="Get a dead letter", response_model=Letter, responses=problems(404))
async def get(letter_id: LetterId, session: InSession) -> Response:
    """Gives one dead letter."""
    return answer(_shown(await _letter(session, letter_id)))


@router.post(
    "/dlq/{letter_id}/replay", summary="Replay a dead letter", response_model=Accepted, responses=problems(404, 409)
)
async def replay(letter_id: LetterId, session: InSession) -> Response:
    """Resumes the run of a dead letter and drops the letter: what had finished is not done again."""
    letter = await _letter(session, letter_id)
    row = await Letters(session.runs).replay(letter.id, by=session.by)
    return answer({"run_id": row.id, "status": row.status.value})


@router.delete("/dlq/{letter_id}", summary="Drop a dead letter", response_model=DroppedLetter, responses=problems(404))
async def drop(letter_id: LetterId, session: InSession) -> Response:
    """Drops a dead letter; its run stays as it is."""
    letter = await _letter(session, letter_id)
    await Letters(session.runs).drop(letter.id)
    return answer({"id": letter.id, "deleted": True})


async def _letter(session: Session, letter_id: str) -> DeadLetter:
    if not _ID.fullmatch(letter_id):
        raise LetterNotFound
    letter = await Letters(session.runs).get(letter_id)
    if session.tenant not in (None, letter.tenant):
        raise LetterNotFound
    return letter


def _shown(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "timestamp": letter.at,
        "reason": letter.reason,
        "error": letter.error,
        "run_id": letter.run_id,
        "number": letter.number,
        "flow_name": letter.flow,
        "tag": letter.tag,
        "tags": letter.tags,
        "worker_id": letter.worker or None,
        "num_delivered": letter.attempt,
        "subject": letter.subject or f"work.{letter.tag}",
    }
