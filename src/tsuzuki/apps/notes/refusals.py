"""What this application refuses: in Japanese and English, with what to do next."""

from tsuzuki.errors import BadRequest, Conflict, TsuzukiError


class BadExport(BadRequest):
    """エクスポートを読み取れません / the export cannot be read: ask for a new one, or unpack it and name the folder."""

    error_id = "ERR-TSUZUKI-0501"
    http_status = 400


class UnknownFormat(BadExport):
    """形式がわかりません / the format of the export is not known: ChatGPT, Claude, Markdown, text and JSONL are."""


class NotUtf8(BadExport):
    """UTF-8 ではないため読み取れません / a file or a line is no UTF-8: save it as UTF-8, and import it again."""

    def __init__(self, name: str, where: str = "") -> None:
        super().__init__(
            f"{name} は UTF-8 ではないため読み取れません。UTF-8 で保存し直してください / "
            f"{name} is no UTF-8{where}: save it as UTF-8, and import it again"
        )


class NoInput(BadExport):
    """[Error] No input files: name an export (ZIP, folder or file) that is there."""

    error_id = "ERR-TSUZUKI-0502"


class SessionNotFound(TsuzukiError):
    """[Error] Session not found"""

    error_id = "ERR-TSUZUKI-0503"
    http_status = 404

    def __init__(self, session_id: str) -> None:
        super().__init__(f"[Error] Session not found: {session_id}")


class ItemNotFound(TsuzukiError):
    """この会話はセッションにありません / there is no such conversation in the session: `tsuzuki notes status` tells."""

    error_id = "ERR-TSUZUKI-0504"
    http_status = 404


class UploadNotFound(TsuzukiError):
    """アップロードがありません / there is no such upload: begin a new one."""

    error_id = "ERR-TSUZUKI-0412"
    http_status = 404


class UploadGap(Conflict):
    """途中のデータがありません / a piece before this one is missing: go on where the upload ends."""

    error_id = "ERR-TSUZUKI-0413"


class TooManyUploads(Conflict):
    """アップロードが多すぎます / as many uploads are under way as may: import some of them, or wait a while."""

    error_id = "ERR-TSUZUKI-0510"


class SessionBusy(Conflict):
    """セッションは実行中です / the session is being worked on already: wait for its end, or cancel it."""

    error_id = "ERR-TSUZUKI-0505"


class BatchOpen(SessionBusy):
    """未回収のバッチがあります / a batch of the session is not collected: resume without options does that first."""


class NothingFailed(BadRequest):
    """失敗した会話はありません / no conversation of that session has failed: there is nothing to retry."""

    error_id = "ERR-TSUZUKI-0506"
    http_status = 400


class Unreachable(Exception):
    """モデルに接続できません / the model cannot be reached, or is overloaded: it is asked again after a while."""


class TurnedAway(Exception):
    """モデルの利用を拒否されました / the provider lets nobody in: look at the key, the model and the account."""


class EmptyAnswer(TsuzukiError):
    """要約または本文が空です。再試行してください / no summary or no content in the answer: retry it."""

    error_id = "ERR-TSUZUKI-0507"


class NoAnswer(TsuzukiError):
    """バッチから回答がありませんでした / the batch has no answer to this: retry it."""

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
