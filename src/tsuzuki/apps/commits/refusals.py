"""What this application refuses, and why a target failed: in Japanese and English, with what to do next.

No text has a token, an address of a person or an answer of a server in it.
"""

from typing import Final

from tsuzuki.errors import BadRequest, Conflict, TsuzukiError

CAUSES: Final = {
    "unauthorized": (
        "認証に失敗しました (401)。トークンを確認し、接続を登録し直してください",
        "the token was refused (401): check it, and register it again with `tsuzuki commits connect`",
    ),
    "forbidden": (
        "権限がありません (403)。トークンの権限 (read_api) とプロジェクトへのアクセスを確認してください",
        "access was denied (403): the token needs the scope read_api and its owner access to the project",
    ),
    "not_found": (
        "プロジェクトまたはブランチが見つかりません (404)。削除や名前の変更がないか確認してください",
        "the project or branch is not there (404): look whether it was removed, renamed or closed to you",
    ),
    "no_branch": (
        "ブランチが見つかりません。削除や名前の変更がないか確認してください。改めて収集するまで一括収集の対象から外します",
        "the repository has no such branch: bulk runs leave it out until it is collected again",
    ),
    "rate_limited": (
        "API の利用制限に達しました (429)。しばらく待ってから失敗した対象を再試行してください",
        "the server limits requests (429): wait a while, then retry what failed",
    ),
    "server": (
        "サーバーエラーが発生しました (5xx)。しばらく待ってから再試行してください",
        "the server failed (5xx): wait a while, then retry what failed",
    ),
    "network": (
        "サーバーに接続できません。ネットワークと URL を確認してください",
        "the server cannot be reached: check the network and the address of the connection",
    ),
    "answer": (
        "サーバーの応答を理解できません。URL が GitLab のものか確認してください",
        "the server's answer is not GitLab's: check the address of the connection",
    ),
    "size": (
        "サーバーの応答が大きすぎるか、時間がかかりすぎます。プロジェクトを指定するか、コマンドラインから実行してください",
        "the server answers too much, or too slowly: name a single project, or use the command line",
    ),
    "storage": (
        "保存に失敗しました。ディスクの空き容量とファイルの権限を確認してください",
        "the commits could not be stored: check free space and permissions of the data folder",
    ),
    "git": (
        "git リポジトリを読み取れません。パスと権限を確認してください",
        "the repository cannot be read: check its path and permissions, and that git is installed",
    ),
    "owner": (
        "別のユーザーが所有するリポジトリです。信頼できる場合は safe.directory に追加してください",
        "the repository belongs to another user: if you trust it, add its path to safe.directory (git config --global)",
    ),
    "connection": (
        "接続設定がありません。接続を登録してください",
        "there is no connection for it: register one with `tsuzuki commits connect`",
    ),
    "token": (
        "トークンがありません。接続を登録し直すか TSUZUKI_GITLAB_TOKEN を設定してください",
        "its token is missing: set TSUZUKI_GITLAB_TOKEN, or register it again with `tsuzuki commits connect`",
    ),
    "empty": (
        "リポジトリにまだコミットがありません。コミットしてから収集してください",
        "the repository has no commits yet: collect it once there are some",
    ),
    "unknown": (
        "想定外のエラーが発生しました。ログを確認してください",
        "something unexpected went wrong: look into the run's log",
    ),
}
"""Why a target failed, and what to do about it."""


class SourceFailure(TsuzukiError):
    """A source could not give what it was asked for; its cause is one of `CAUSES`."""

    error_id = "ERR-TSUZUKI-0301"
    http_status = 502

    def __init__(self, cause: str, note: str = "") -> None:
        super().__init__(told(cause, note))
        self.cause = cause


def told(cause: str, note: str = "") -> str:
    """Says why something failed, in both languages; a note says which."""
    japanese, english = CAUSES[cause]
    return f"{japanese} / {english}{f' ({note})' if note else ''}"


class HeadGone(Exception):
    """The commit up to which a branch is stored is unknown at its source."""


class TargetFailed(TsuzukiError):
    """A target could not be collected; its message is the one of its result."""

    error_id = "ERR-TSUZUKI-0302"


class NotThere(TsuzukiError):
    """There is no such thing in this application."""

    error_id = "ERR-TSUZUKI-0303"
    http_status = 404


class BulkRunning(Conflict):
    """一括収集が既に実行中です / a bulk collection is running already: wait for it, or `tsuzuki commits cancel`."""

    error_id = "ERR-TSUZUKI-0304"


class NothingRunning(NotThere):
    """実行中の一括収集はありません / no bulk collection is running: there is nothing to cancel."""


class NoTargets(BadRequest):
    """収集対象が見つかりません / there is nothing to collect: collect a branch first with `tsuzuki commits collect`."""

    error_id = "ERR-TSUZUKI-0305"
    http_status = 400


class NothingFailed(BadRequest):
    """失敗した対象が見つかりません / no target of that run has failed: there is nothing to retry."""

    error_id = "ERR-TSUZUKI-0306"
    http_status = 400


class NoConnection(BadRequest):
    """接続設定がありません / there is no connection: register one with `tsuzuki commits connect`."""

    error_id = "ERR-TSUZUKI-0307"
    http_status = 400


class BranchBusy(Conflict):
    """収集中のブランチは削除できません / that branch is being collected: wait for its end."""

    error_id = "ERR-TSUZUKI-0308"
