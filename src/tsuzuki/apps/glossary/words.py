"""Words that are no terms by themselves, English and Japanese: those between terms, and those everybody knows."""

from typing import Final

# ruff: noqa: SIM905 - words are read more easily than lists of them

DETERMINERS: Final = frozenset(
    "a an the this that these those each every any some no its his her their our your my of in by with per for from "
    "into on at as between across through under over another other same such which whose both one two several".split()
)
"""Words after which a noun stands."""

SINGLE: Final = frozenset("a an each every another one".split())
"""Words after which one thing stands: what then ends in s is what it does."""

NOUNS: Final = frozenset(
    """
    ally anomaly archive assembly belly bully butterfly derivative directive drive executive family fish fly folly
    gully handful homily incentive initiative jelly lily missive monopoly motive narrative native objective olive
    perspective primitive rally reply representative supply tally variable wish
    """.split()
)
"""Nouns that end as words of other kinds do."""

VERB_SIGNS: Final = frozenset(
    "to can cannot will would must may might should could not they it we you i who he she let".split()
)
"""Words after which a verb stands."""

FUNCTION_WORDS: Final = (
    DETERMINERS
    | VERB_SIGNS
    | frozenset(
        """
    and or but nor so yet if then else than when while where whether because since until unless although though
    about above after again against all almost alone along already also always am among amongst and are around away
    back be became because become becomes been before behind being below beneath beside besides best better beyond
    came come comes did do does doing done down during either elsewhere enough even ever everybody everyone
    everything everywhere except far few first further get gets getting give given gives go goes going gone got had
    has have having hence here hers herself him himself how however indeed instead is itself just keep keeps kept
    last later least less like little long made make makes making many me meanwhile mine more moreover most mostly
    much my myself neither never nevertheless next nobody none nothing now nowhere off often once only onto
    opposite or ought ours ourselves out outside own past perhaps please quite rather really said say says see
    seem seemed seems seen shall something sometimes somewhere still take taken takes tell tells them themselves
    there therefore these thing things three thus today together too took toward towards twice unlike up upon us use
    used uses using usually very via was way ways well were what whatever whenever wherever within without whole whom
    why yes yourself etc e.g i.e vs need needs needed want wants wanted know knows known think put puts set sets
    look looks looked show shows shown called call calls means mean meant happen happens begin begins began
    end ends ended stay stays find finds found run's it's don't doesn't isn't aren't can't won't that's there's
    new old good bad big small large great high low full empty able different several certain possible available
    anew late inside beside soon again whoever whatever whichever ones mb kb gb mib gib kib ms µs
    four five six seven eight nine ten hundred thousand million right wrong true false else own least
    """.split()
    )
)

COMMON_ENGLISH: Final = frozenset(
    """
    account action address age answer area article author beginning bit body book box case cause chance change
    chapter child city class colour color company copy copyright country course day days detail difference door
    edge effect example eye fact family feature field figure food form foot friend front game girl goal group
    growth hand head help history home hour hours house idea information interest issue job kind language law left
    letter level life light line list lot man map matter meaning method middle minute minutes moment money month
    morning name nature night note number office order page paper parent part party people person piece place plan
    point position power price problem process product program question reason rest result road role room rule
    school second seconds section sentence service shape side sign size sort sound space start state step stop
    story study subject sum system table talk team test text time times title top total town turn type unit user
    value version view voice walk wall water week weeks woman word words work world year years yesterday tomorrow
    thing everything anything amount attempt benefit choice comment condition content context control data date
    default description design development difficulty document end error event evidence experience explanation
    file folder format function future guide image input item key knowledge limit link machine management market
    material member memory message model need noise option output overview paragraph past pattern performance
    period practice present progress project purpose quality range rate reader reference report request
    requirement research response review sample scale science series setting situation solution source
    standard status structure style success summary support task technique technology term thought tool topic
    trouble truth usage variable way website writer decision consequence introduction configuration summary
    background conclusion appendix contents chapter overview motivation
    """.split()
)
"""Nouns that everybody knows; they are terms only as part of one."""

COMMON_JAPANESE: Final = frozenset(
    """
    場合 方法 内容 結果 問題 必要 可能 時間 人間 自分 自身 今回 今後 以下 以上 上記 下記 全体 一部 一般 通常 最初
    最後 最近 現在 過去 将来 目的 理由 原因 影響 関係 状態 状況 部分 種類 例 例外 説明 概要 詳細 確認 利用 使用
    実行 処理 作成 追加 削除 変更 更新 設定 管理 対応 対象 記述 表示 入力 出力 開始 終了 開発 提供 実現 実施 実装
    検討 検索 選択 指定 保存 参照 取得 登録 提案 分析 評価 比較 計算 情報 文書 資料 文章 文字 言葉 名前 名称 番号
    数値 値 単位 程度 範囲 期間 時点 段階 手順 順番 順序 位置 場所 方向 側面 観点 立場 意味 意見 考え 考え方 気持ち
    仕事 作業 活動 行動 動作 操作 生活 社会 世界 日本 国内 海外 企業 会社 組織 個人 利用者 使用者 担当者 関係者 人々
    多数 少数 大量 少量 複数 単一 全て 全部 両方 片方 前者 後者 今日 昨日 明日 午前 午後 毎日 毎年 年間 月間 本書
    本章 本節 次章 前章 図 表 章 節 項 項目 ページ ファイル データ システム サービス プログラム ソフトウェア
    コンピュータ コンピューター ユーザー ユーザ ケース ポイント レベル タイプ サイズ リスト メリット デメリット
    イメージ テキスト メモ もの こと ため とき それぞれ 特徴 機能 要素 構成 構造 基本 基礎 重要 大切 便利 簡単
    容易 困難 十分 不要 有効 無効 適切 正確 明確 独自 共通 特定 特別 普通 同様 同時 直接 間接 自動 手動 一度 一方
    研究 技術 知識 経験 能力 努力 成功 失敗 注意 警告 質問 回答 依頼 連絡 報告 相談 会議 発表 参加 準備 予定 計画
    水 火 木 金 土 空気 人 物 事 者 年 月 日 時 分 秒 円 回 個 本 枚 台 名 件 度 倍 割 前 後 中 間 上 下 左 右 内 外
    役割 判断 工夫 検証 導入 適用 発生 存在 増加 減少 向上 改善 維持 継続 完了 成立 依存 接続 移動 変換 分割 結合
    """.split()
)
"""Nouns that everybody knows."""

LEADING_JAPANESE: Final = frozenset(
    """
    本 各 同 当 全 両 毎 毎日 毎回 毎週 毎月 毎年 毎朝 毎晩 各種
    上記 下記 以下 以上 次 前 後 約 他 第 その この
    """.split()
)
TRAILING_JAPANESE: Final = frozenset(
    """
    等 後 前 中 時 間 毎 内 外 上 下 以上 以下 以外 以降 以前 場合 際 的 方 分 目 ごと 自体 同士 全体 全般 向け 付き
    済み など まで たび 当たり 別 自身 側 可能 必要 不要 次第 一方 ため 的確 用 先 元 順 量 数 者 以内 程度 全部
    """.split()
)
"""What is cut off the ends of a Japanese phrase."""
