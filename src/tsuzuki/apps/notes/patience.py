"""When a run gives up: the model stays away, or more fails than somebody allows."""

from typing import Any, Final

from tsuzuki.apps.notes.refusals import (
    ExtractDamaged,
    ModelAway,
    TooManyFailed,
    TurnedAway,
    Unreachable,
    both,
    halves,
)
from tsuzuki.results import Failure

IN_A_ROW: Final = 5
"""After so many conversations in a row that nobody answered, the others are not asked about."""
_AWAY: Final = frozenset({Unreachable.__name__, TurnedAway.__name__})


class Patience:
    """Hears what became of the items of a run, as they end, and raises when it makes no sense to go on."""

    def __init__(self, total: int, threshold: float | None, lanes: int = 1) -> None:
        self._total = total
        self._threshold = threshold
        self._most_away = max(IN_A_ROW, lanes)  # what is asked at the same moment fails together
        self._away = self._failed = 0
        self.damaged = False
        """Whether something that extract put out makes no sense; all else goes on, and is paid for once."""

    def transformed(self, outcome: Any) -> None:
        """Hears what came of asking the model."""
        if not isinstance(outcome, Failure):
            self._away = 0
            return
        self._away = self._away + 1 if outcome.error_type in _AWAY else 0
        if self._away >= self._most_away:
            japanese, english = halves(outcome.error)
            raise ModelAway(
                both(
                    f"モデルから応答がないため中止しました。{self._away} 件の会話で続けて応答がなく、残りは問い合わせて"
                    f"いません。最後のエラー：{japanese}",
                    f"the model stays away: {self._away} conversations in a row got no answer, the rest was not asked "
                    f"about. The last one: {english}",
                )
            )
        self.failed(outcome)

    def failed(self, outcome: Any) -> None:
        """Hears what came of a stage; only failures count."""
        if not isinstance(outcome, Failure):
            return
        if outcome.error_type == ExtractDamaged.__name__:  # that is no failure of a conversation
            self.damaged = True
            return
        self._failed += 1
        if self._threshold is not None and self._failed * 100 > self._threshold * self._total:
            raise TooManyFailed(
                f"失敗が {self._threshold:g}% を超えたため中止しました（{self._total} 件中 {self._failed} 件） / "
                f"more than {self._threshold:g}% have failed: {self._failed} of {self._total}"
            )
