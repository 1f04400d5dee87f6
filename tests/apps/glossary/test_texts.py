"""Candidates, occurrences, definitions and exports, without a run."""

import csv
import io
import json
import unicodedata
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.apps.glossary.conftest import Study
from tests.apps.glossary.sample_texts import gold, sample
from tsuzuki.apps.glossary.candidates import find_candidates
from tsuzuki.apps.glossary.documents import read_folder
from tsuzuki.apps.glossary.exports import as_json, markdown, separated, tbx_basic
from tsuzuki.apps.glossary.extractive import NOTHING, found_definition
from tsuzuki.apps.glossary.occurrences import TermIndex, find_occurrences, places
from tsuzuki.apps.glossary.offline import category_of
from tsuzuki.apps.glossary.records import Document, Entry, Occurrence
from tsuzuki.apps.glossary.refusals import Taken


@pytest.mark.parametrize(("language", "least"), [("ja", 0.6), ("en", 0.5)])
def test_most_of_the_first_twenty_candidates_are_terms(language: str, least: float) -> None:
    found = [each.text for each in find_candidates(sample(language)) if category_of(each.text) != "common_noun"]
    assert sum(term in gold(language) for term in found[:20]) / 20 >= least, found[:20]


def test_nouns_that_look_like_other_words_are_terms_and_what_somebody_does_is_none() -> None:
    text = "Royal jelly is dear. Bees eat royal jelly. A run belongs to a tenant, and a run waits. The run of others."
    found = [each.text for each in find_candidates([Document("a.md", text)])]
    assert "royal jelly" in found
    assert {"run belong", "run wait", "other"}.isdisjoint(found)
    assert "毎日測" not in [each.text for each in find_candidates([Document("a.md", "酒度を毎日測って記録する。")])]
    assert "二度行" not in [each.text for each in find_candidates([Document("a.md", "火入れは二度行う。")])]


def test_what_the_documents_explain_is_a_candidate_however_seldom_it_stands_there() -> None:
    english = "The waggle dance and the round dance tell of nectar in the flowers. " * 60
    japanese = "純米酒と日本酒の並行複発酵は醸造工程の温度管理で決まる。" * 60
    explained = ("Propolis is a resin from buds.", "火入れをしない酒を生酒という。", "加えた酒を本醸造酒と呼ぶ。")
    text = "\n\n".join((english, japanese, *explained))
    found = [each.text for each in find_candidates([Document("a.md", text)])]
    assert {"propolis", "生酒", "本醸造酒"} <= set(found), found


def test_a_name_keeps_its_capitals_inside_so_that_it_is_found_again() -> None:
    text = "The dance was read by Karl von Frisch. The prize of von Frisch was great."
    found = [each.text for each in find_candidates([Document("a.md", text)])]
    assert "von frisch" not in found


def test_a_word_that_only_looks_like_a_plural_keeps_its_end() -> None:
    text = (
        "The Kubernetes is a system. In Kubernetes the pods wait. A Jenkins is a server, and Jenkins builds. "
        "The time series is a list, and the time series grows. The wax cell is small; the wax cells are many. "
        "The APIs are old, and the APIs grow."
    )
    found = {each.text for each in find_candidates([Document("a.md", text)])}
    assert {"Kubernetes", "Jenkins", "time series", "wax cell", "API"} <= found
    assert not {"kubernete", "Kubernete", "Jenkin", "time sery", "wax cells", "APIs"} & found


def test_code_and_addresses_have_no_terms() -> None:
    text = (
        "```\nfetch_everything fetch_everything\n```\nThe `secret_name` is at https://host.example/secret/place.\n" * 5
    )
    assert (
        find_candidates([Document("a.md", f"{text}\nA journal entry is a journal entry.")])[0].text == "journal entry"
    )


@pytest.mark.parametrize(
    ("term", "category"),
    [
        ("山田太郎氏", "person_name"), ("東京都", "place_name"), ("株式会社山田製作所", "organization"),
        ("取締役社長", "title"), ("量子コンピュータ", "technical_term"), ("場合", "common_noun"),
        ("example", "common_noun"), ("JetStream", "technical_term"), ("Dr. Grace Hopper", "person_name"),
        ("Acme Corp.", "organization"), ("Managing Director", "title"),
    ],
)  # fmt: skip
def test_terms_have_kinds(term: str, category: str) -> None:
    assert category_of(term) == category


def test_words_are_whole_in_ascii_and_parts_in_japanese() -> None:
    index = TermIndex({"run": "run", "API": "API", "量子": "量子", "量子計算": "量子計算", "C++": "C++", "円": "円"})
    text = "Runs prune a run; API、rerun. 量子計算のAPI and C++ 100円"
    found = [(match.term, text[match.start : match.end]) for match in index.find(text)]
    assert sorted(found) == sorted(
        [
            ("run", "Runs"),
            ("run", "run"),
            ("API", "API"),
            ("量子", "量子"),
            ("量子計算", "量子計算"),
            ("API", "API"),
            ("C++", "C++"),
            ("円", "円"),
        ]
    )
    shown = places(index, "x\n  量子計算 and API")
    assert [(each.term, each.line, each.column, each.length) for each in shown] == [
        ("量子計算", 2, 3, 4),
        ("API", 2, 12, 3),
    ]


def test_an_occurrence_has_its_line_and_its_neighbours() -> None:
    text = "one\ntwo\n\n# worker\n\nA worker is somebody.\nafter\n```\nworker = 1\n```\nlast worker"
    found = find_occurrences([Document("a/b.md", text)], TermIndex({"worker": "worker"}))["worker"]
    assert found[0] == Occurrence("a/b.md", 6, "# worker\nA worker is somebody.\nafter")
    assert [each.line_number for each in found] == [6, 4, 11, 9]


@pytest.mark.parametrize(
    ("term", "context", "definition"),
    [
        (
            "糖化",
            "製麹の話。糖化とは、でんぷんを糖に変える働きである。次の話。",
            "糖化とは、でんぷんを糖に変える働きである。",
        ),
        ("bee space", "Text. Bee space is a gap of six\nmillimetres. More.", "Bee space is a gap of six millimetres."),
        (
            "swarm",
            "# Swarm\nBees that look for a new home hang in a tree.",
            "Bees that look for a new home hang in a tree.",
        ),
        ("key", "| word | meaning |\n| key | what one run may hold |", "what one run may hold."),
        ("lease", "- **lease**: how long a claim lives", "how long a claim lives."),
        ("山廃酛", "生酛のうち、山卸を廃したものを山廃酛という。", "生酛のうち、山卸を廃したものを山廃酛という。"),
        ("初添", "一回目を初添、二回目を仲添という。", "一回目を初添、二回目を仲添という。"),
        (
            "並行複発酵",
            "糖化と発酵が同時に進む。これを並行複発酵という。",
            "糖化と発酵が同時に進む。これを並行複発酵という。",
        ),
        (
            "apiary",
            "It should be dry; an apiary is the place of hives.",
            "It should be dry; an apiary is the place of hives.",
        ),
        ("propolis", "They use propolis, a resin that they find.", "They use propolis, a resin that they find."),
        ("failure", "Failures. Structured answers.", NOTHING),
        ("wheel", "## Wheels\n\nHow they come is in wheels.md. A wheel holds code.", "A wheel holds code."),
        ("model", "- **model**: `FakeLLM`\n\nA model answers every question.", "A model answers every question."),
        ("nothing", "unrelated text", NOTHING),
    ],
)
def test_definitions_are_found_in_the_text(term: str, context: str, definition: str) -> None:
    found, confidence = found_definition([term], [f"a.md:1\n{context}"])
    assert found == definition
    assert (confidence > 0) == (definition != NOTHING)


def test_exports_say_the_same_in_every_format() -> None:
    place = Occurrence("a.md", 3, "x")
    entries = [Entry("=b<i>", 'say "x" & y,\nz', 0.5, ["別の名"], [place] * 7), Entry("a", "first", 1.0)]
    text = markdown("Title", entries)
    assert text.index("## a") > text.index("# Title")
    assert "&lt;i>" in text
    assert "- `a.md:3`" in text
    assert "別の名" in text
    assert "別名" in text
    table = separated("t", entries)
    assert table.startswith("\ufeff"), "without it Excel takes UTF-8 for Shift_JIS"
    rows = list(csv.reader(io.StringIO(table[1:])))
    assert rows[1][:3] == ["'=b<i>", 'say "x" & y,\nz', "0.50"]
    assert json.loads(as_json("t", entries))["entries"][0]["aliases"] == ["別の名"]
    root = ET.fromstring(tbx_basic("t", entries).encode())  # noqa: S314 - our own text
    space = "{urn:iso:std:iso:30042:ed-2}"
    assert [each.text for each in root.iter(f"{space}term")] == ["=b<i>", "別の名", "a"]
    assert [each.text for each in root.iter(f"{space}termNote")][:2] == ["noun", "preferredTerm-admn-sts"]
    empty = ET.fromstring(tbx_basic("t", []).encode())  # noqa: S314 - our own text
    assert list(empty.iter(f"{space}body")) == [], "a body has at least one concept"
    assert "and 2 more" in text
    assert "ほか多数" in markdown("題", [Entry("語", "意味", 0.5, [], [place] * 20)]), "more are not kept"
    assert root.find(f".//{space}descrip").text == 'say "x" & y,\nz'  # type: ignore[union-attr]


async def test_texts_and_terms_are_the_same_in_any_normal_form_and_width(study: Study) -> None:
    await study.work()
    text = "ガバナンスとは、統治の仕組みである。ガバナンスは大切である。\nｻｰﾊﾞｰとは、ＡＰＩを提供する装置である。"
    project = study.project(unicodedata.normalize("NFD", text))
    (document,) = project.documents.each()
    assert document.content == text
    await study.run(project, "extract")
    found = {term.term_text for term in project.terms.list()}
    assert {"ガバナンス", "サーバー", "API"} <= found
    for again in (unicodedata.normalize("NFD", "ガバナンス"), "ｻｰﾊﾞｰ", "ＡＰＩ"):
        with pytest.raises(Taken):
            project.terms.add(again)
    study.desk.registry.add(unicodedata.normalize("NFD", "ガ"))
    with pytest.raises(Taken):
        study.desk.registry.add("ガ")
    seen = places(TermIndex({name: name for name in ("サーバー", "API")}), text)
    assert [(place.term, place.text, place.line, place.column, place.length) for place in seen] == [
        ("サーバー", "ｻｰﾊﾞｰ", 2, 1, 5),
        ("API", "ＡＰＩ", 2, 9, 3),
    ]


def test_documents_in_shift_jis_are_read_and_other_bytes_are_not(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes("用語集とは、用語を集めたものです。".encode("cp932"))
    (tmp_path / "latin.txt").write_bytes("été à la café tôt".encode("latin-1"))
    found, skipped = read_folder(tmp_path)
    assert found == [Document("old.txt", "用語集とは、用語を集めたものです。")]
    assert skipped == ["latin.txt: neither UTF-8 nor Shift_JIS. Save it as UTF-8"]
