"""What this application refuses: in Japanese and English, with what to do next."""

import re
from pathlib import Path
from typing import Final

from tsuzuki.errors import BadRequest, BadUsage, Conflict, TsuzukiError

_BETWEEN: Final = " / "
_IN_BRACKETS: Final = re.compile(r"（((?=[^（）]*?[A-Za-z][^（）]{20})[^（）]++)）")
"""What a Japanese half repeats of others, such as a provider; what is short, such as a name, is no sentence."""


def both(japanese: str, english: str) -> str:
    """Puts the halves of a message together. What is told of others in the first has no " / ": pages cut it there."""
    return f"{japanese.replace(_BETWEEN, '/')}{_BETWEEN}{english}"


def halves(text: str) -> tuple[str, str]:
    """Gives the Japanese and the English half of a message; twice the same where it has one language."""
    japanese, between, english = text.partition(_BETWEEN)
    return (japanese, english) if between else (text, text)


def said_once(text: str) -> str:
    """Gives a message for who reads both halves: what others said, in brackets in the first, is left to the second."""
    japanese, english = halves(text)
    told = _IN_BRACKETS.search(japanese)
    if told is None or told[1] not in english.replace(_BETWEEN, "/"):
        return text
    return f"{japanese[: told.start()]}{japanese[told.end() :]}{_BETWEEN}{english}"


class BadExport(BadRequest):
    """エクスポートを読み取れません / the export cannot be read: ask for a new one, or unpack it and name the folder."""

    error_id = "ERR-TSUZUKI-0501"
    http_status = 400


class UnknownFormat(BadExport):
    """形式がわかりません / the format of the export is not known: ChatGPT, Claude, Markdown, text and JSONL are."""


class NotUtf8(BadExport):
    """UTF-8 ではないため読み取れません / a file or a line is no UTF-8: save it as UTF-8, and import it again."""

    def __init__(self, name: str, place: int | None = None) -> None:
        where, there = ("", "") if place is None else (f"（{place:,} 文字目）", f" at character {place:,}")
        super().__init__(
            both(
                f"{name} は UTF-8 ではないため読み取れません{where}。UTF-8 で保存して、取り込み直してください",
                f"{name} is no UTF-8{there}: save it as UTF-8, and import it again",
            )
        )


NEW_EXPORT: Final = (
    "新しいエクスポートを取得するか、ファイルを直して、取り込み直してください（再開しても変わりません） / "
    "get a new export, or mend the file, and import it again: to go on with this one changes nothing"
)
"""What helps where an export breaks off, or makes no sense."""


class InputChanged(BadExport):
    """セッションのエクスポートが変更されています / the export that the session keeps was changed since."""

    error_id = "ERR-TSUZUKI-0525"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} は取り込んだときの内容ではありません（上書きされたか、停電などで失われました）。元のエクスポートを"
            "同じ場所に戻すか、新しいエクスポートとして取り込んでください / "
            f"{path} is not what was imported (it was written over, or lost by a power cut): put the old export "
            "back there, or import the new one as such"
        )


OF_THE_EXPORT: Final = frozenset(kind.__name__ for kind in (BadExport, UnknownFormat, NotUtf8))
"""The kinds of errors that no resume mends."""


class NoInput(BadExport):
    """[Error] No input files: エクスポートを指定してください / name an export (ZIP, folder or file) that is there."""

    error_id = "ERR-TSUZUKI-0502"

    @classmethod
    def because(cls, japanese: str, english: str) -> "NoInput":
        """Says why there is no input, behind the words that scripts look for."""
        return cls(both(f"[Error] No input files: {japanese}", english))


class SessionNotFound(TsuzukiError):
    """[Error] Session not found"""

    error_id = "ERR-TSUZUKI-0503"
    http_status = 404

    def __init__(self, session_id: str) -> None:
        super().__init__(f"[Error] Session not found: {session_id}")


class InTheWay(BadUsage):
    """セッションのファイルを読み書きできません / something stands where a file of the session belongs: move it away."""

    error_id = "ERR-TSUZUKI-0519"
    http_status = 409

    def __init__(self, path: Path, error: OSError | None = None) -> None:
        why = "is a folder" if path.is_dir() else f"cannot be opened ({error.strerror})" if error else "is no file"
        reason = "フォルダーです" if path.is_dir() else error.strerror if error else "ファイルではありません"
        super().__init__(
            both(
                f"{path} を読み書きできません（{reason}）。別の場所に移すか、権限を直してから、もう一度実行して"
                "ください",
                f"{path} {why}: move it away, or let it be read and written, and try again",
            )
        )


class VaultGone(BadUsage):
    """ノートのフォルダーがありません / the vault with the notes is gone: put it back, or name another with --out."""

    error_id = "ERR-TSUZUKI-0520"
    http_status = 409

    def __init__(self, vault: Path) -> None:
        super().__init__(
            f"ノートを書いたフォルダー {vault} がありません。元に戻すか、--out で別のフォルダーを指定してください / "
            f"{vault} is gone, with the notes that were written into it: put it back, or name another folder with "
            "`tsuzuki notes resume --out`, which gets what is not written yet"
        )


class VaultEmpty(BadUsage):
    """ノートのフォルダーが空です / the vault is empty, its notes are gone: put them back, or name it with --out."""

    error_id = "ERR-TSUZUKI-0523"
    http_status = 409

    def __init__(self, vault: Path) -> None:
        super().__init__(
            f"ノートを書いたフォルダー {vault} が空です。ドライブの接続を確認してください。空のまま続けるには --out で"
            "このフォルダーを指定してください / "
            f"{vault} is empty, although notes were written into it: is its drive there? Put them back, or go on "
            "without them by naming the folder again with `tsuzuki notes resume --out`"
        )


class ItemNotFound(TsuzukiError):
    """この会話はセッションにありません / there is no such conversation in the session: `tsuzuki notes status` tells."""

    error_id = "ERR-TSUZUKI-0504"
    http_status = 404


class UploadNotFound(TsuzukiError):
    """アップロードがありません。最初からやり直してください / there is no such upload: begin a new one."""

    error_id = "ERR-TSUZUKI-0412"
    http_status = 404


class UploadGap(Conflict):
    """途中のデータがありません / a piece before this one is missing: go on where the upload ends."""

    error_id = "ERR-TSUZUKI-0413"


class TooManyUploads(Conflict):
    """アップロードが多すぎます。取り込むか、待ってください / too many uploads are under way: import some, or wait."""

    error_id = "ERR-TSUZUKI-0510"


class SessionBusy(Conflict):
    """セッションは実行中です。終了を待つか中止してください / the session is being worked on already: wait or cancel."""

    error_id = "ERR-TSUZUKI-0505"


class ImportedAlready(SessionBusy):
    """このエクスポートは取り込み中です / this export is being imported into this vault already: wait, or cancel it."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"このエクスポートは、セッション {session_id} が同じフォルダーに取り込み中です。終了を待つか中止して"
            "ください / "
            f"session {session_id} imports this export into the same vault already: wait for it, or cancel it"
        )


class KeyReused(BadUsage):
    """この Idempotency-Key は別の内容で使われました / this key has made another session: send a new one."""

    error_id = "ERR-TSUZUKI-0524"
    http_status = 422

    def __init__(self, key: str, session_id: str) -> None:
        super().__init__(
            f"Idempotency-Key {key[:40]!r} は、別の内容のリクエストでセッション {session_id} を作りました。新しいキーを"
            "使ってください / "
            f"{key[:40]!r} has made session {session_id}, of another request: send a new key with another request"
        )


class BatchOpen(SessionBusy):
    """未回収のバッチがあります。先に指定なしで再開してください / a batch is open: resume without options first."""


class BatchesDamaged(BadUsage):
    """import/batches.jsonl に失われた行があります / import/batches.jsonl has lost a line."""

    error_id = "ERR-TSUZUKI-0521"

    def __init__(self, batch: str) -> None:
        super().__init__(
            f"import/batches.jsonl に、バッチ {batch} の質問の行がありません。コピーから戻すか、このファイルを削除して"
            "ください（削除すると同じ質問に再び料金がかかります） / "
            f"import/batches.jsonl has lost the line that says what batch {batch} was asked: put it back from a copy, "
            "or remove the file (then it is asked, and paid for, again, unless the database knows it)"
        )


class NothingFailed(BadRequest):
    """失敗した会話がないため、再試行するものはありません / no conversation has failed: there is nothing to retry."""

    error_id = "ERR-TSUZUKI-0506"
    http_status = 400


class Unreachable(Exception):
    """モデルに接続できません / the model cannot be reached, or is overloaded: it is asked again after a while."""


class TurnedAway(Exception):
    """モデルの利用を拒否されました / the provider lets nobody in: look at the key, the model and the account."""


class EmptyAnswer(TsuzukiError):
    """要約または本文が空です。再試行してください / no summary or no content in the answer: retry it."""

    error_id = "ERR-TSUZUKI-0507"


class ExtractDamaged(TsuzukiError):
    """抽出した会話が壊れています。再開すると抽出し直します / what extract put out is damaged: resume does it anew."""

    error_id = "ERR-TSUZUKI-0522"


class NoAnswer(TsuzukiError):
    """バッチから回答がありませんでした。再試行してください / the batch has no answer to this: retry it."""

    error_id = "ERR-TSUZUKI-0414"


class ChunksMissing(TsuzukiError):
    """分割の一部が失敗しています / chunks of this conversation have failed: retry them, then it is merged."""

    error_id = "ERR-TSUZUKI-0508"


class ModelAway(TsuzukiError):
    """モデルから応答がないため中止しました / the model stays away: `tsuzuki notes resume` goes on when it is back."""

    error_id = "ERR-TSUZUKI-0410"


class TooManyFailed(TsuzukiError):
    """失敗が多すぎるため中止しました / more has failed than was allowed: `tsuzuki notes resume` tries it again."""

    error_id = "ERR-TSUZUKI-0411"


class Crashed(TsuzukiError):
    """取り込みが途中で止まりました / the import stopped on the way: `tsuzuki notes resume` goes on."""

    error_id = "ERR-TSUZUKI-0509"
