// What the pages say, in two languages with equal keys.
export const words = {
  en: {
    "flow.notes_import": "Makes notes of what a session has not made notes of yet: of all, of so many, or only of what failed.",
    "notes.session": "Session", "notes.sessions": "Sessions", "notes.created": "Created", "notes.state": "State", "notes.progress": "Progress",
    "notes.import": "Import an export", "notes.none": "No session yet",
    "notes.noneText": "Name a ChatGPT or Claude export and a vault: every conversation becomes a note.", "notes.export": "Export",
    "notes.exportHint": "path of a ZIP, a folder or a file", "notes.vault": "Vault", "notes.vaultHint": "path of the folder for the notes",
    "notes.chunk": "cut long conversations", "notes.start": "Import", "notes.begun": "Import started", "notes.resume": "Go on",
    "notes.retry": "Retry the failed", "notes.cancel": "Cancel", "notes.provider": "Format", "notes.cost": "Cost", "notes.run": "Run",
    "notes.success": "done", "notes.error": "failed", "notes.skipped": "skipped", "notes.pending": "pending", "notes.failed": "Failed conversations",
    "notes.conversation": "Conversation", "notes.stage": "Stage", "notes.reason": "Reason", "notes.notes": "Notes", "notes.note": "Note",
    "notes.item": "Item", "notes.noNotes": "No notes yet", "notes.before": "Previous", "notes.after": "Next",
    "notes.gone": "The file is not there any more.", "notes.state.PENDING": "waiting", "notes.state.IN_PROGRESS": "running",
    "notes.state.COMPLETED": "completed", "notes.state.PARTIAL": "partly done", "notes.state.FAILED": "all failed", "notes.state.CRASHED": "crashed",
  },
  ja: {
    "flow.notes_import": "セッションのまだノートになっていない会話をノートにします。すべて、指定した件数、または失敗したものだけを処理できます。",
    "notes.session": "セッション", "notes.sessions": "セッション一覧", "notes.created": "作成", "notes.state": "状態", "notes.progress": "進捗",
    "notes.import": "エクスポートを取り込む", "notes.none": "セッションはまだありません", "notes.noneText": "ChatGPT または Claude のエクスポートと保存先を指定すると、会話ごとにノートを作成します。",
    "notes.export": "エクスポート", "notes.exportHint": "ZIP・フォルダ・ファイルのパス", "notes.vault": "保存先", "notes.vaultHint": "ノートを書き込むフォルダのパス",
    "notes.chunk": "長い会話を分割", "notes.start": "取り込む", "notes.begun": "取り込みを開始しました", "notes.resume": "再開", "notes.retry": "失敗分を再試行",
    "notes.cancel": "キャンセル", "notes.provider": "形式", "notes.cost": "費用", "notes.run": "実行", "notes.success": "成功", "notes.error": "失敗",
    "notes.skipped": "スキップ", "notes.pending": "未処理", "notes.failed": "失敗した会話", "notes.conversation": "会話", "notes.stage": "ステージ",
    "notes.reason": "理由", "notes.notes": "ノート一覧", "notes.note": "ノート", "notes.item": "アイテム", "notes.noNotes": "ノートはまだありません", "notes.before": "前へ",
    "notes.after": "次へ", "notes.gone": "ファイルはもうありません。", "notes.state.PENDING": "待機中", "notes.state.IN_PROGRESS": "実行中", "notes.state.COMPLETED": "完了",
    "notes.state.PARTIAL": "一部完了", "notes.state.FAILED": "全件失敗", "notes.state.CRASHED": "異常終了",
  },
};
