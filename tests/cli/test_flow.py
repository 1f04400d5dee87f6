"""`tsuzuki flow check` and `tsuzuki flow show`: a YAML flow looked at without running it."""

from tests.cli.conftest import Terminal

GOOD = """\
flow:
  graph: |
    load >> (clean & stats) >> report
    (clean | stats) >> first
tasks:
  load:   {callable: "nowhere:load"}
  clean:  {callable: "nowhere:clean", map: $node.load.output}
  stats:  {callable: "nowhere:stats"}
  report: {callable: "nowhere:report"}
  first:  {callable: "nowhere:first"}
  spare:  {callable: "nowhere:spare"}
"""


def test_a_sound_file_is_ok_and_nothing_of_it_is_imported(terminal: Terminal) -> None:
    (terminal.folder / "good.yaml").write_text(GOOD)
    assert terminal.tsuzuki("flow", "check", "good.yaml").stdout == "good.yaml: ok\n"
    assert terminal.json("flow", "check", "good.yaml") == []


def test_what_is_wrong_is_told_by_file_line_and_column(terminal: Terminal) -> None:
    (terminal.folder / "good.yaml").write_text(GOOD)
    (terminal.folder / "bad.yaml").write_text(GOOD.replace("stats) >> report", "stat) >> report").replace("map", "mop"))
    told = terminal.tsuzuki("flow", "check", "bad.yaml", "good.yaml", code=1).stdout
    assert told == (
        "bad.yaml:3:22: the graph names 'stat', which is not in `tasks`; did you mean 'stats'?\n"
        "bad.yaml:7:39: task 'clean' has no key 'mop'; did you mean 'map'?\n"
        "good.yaml: ok\n"
    )
    [first, _] = terminal.json("flow", "check", "bad.yaml", code=1)
    assert (first["file"], first["line"], first["column"]) == ("bad.yaml", 3, 22)


def test_the_name_of_a_registered_task_is_told_as_not_checked(terminal: Terminal) -> None:
    (terminal.folder / "good.yaml").write_text(GOOD.replace("nowhere:load", "load"))
    told = terminal.tsuzuki("flow", "check", "good.yaml")
    assert told.stdout == "good.yaml: ok\n"
    assert told.stderr.startswith("good.yaml: load not checked: only the gateway knows")


def test_a_file_may_come_through_a_pipe(terminal: Terminal) -> None:
    assert terminal.tsuzuki("flow", "check", "-", stdin=GOOD).stdout == "-: ok\n"
    assert "-:1:1: there is nothing in it" in terminal.tsuzuki("flow", "check", "-", stdin="", code=1).stdout


def test_a_file_that_is_not_there_is_told(terminal: Terminal) -> None:
    told = terminal.tsuzuki("flow", "check", "nope.yaml", code=1).stderr
    assert told.startswith("error: nope.yaml cannot be read: No such file or directory; say the path")


def test_the_graph_is_drawn(terminal: Terminal) -> None:
    (terminal.folder / "good.yaml").write_text(GOOD)
    assert terminal.tsuzuki("flow", "show", "good.yaml").stdout == (
        "╭ 1 ─ load\n"
        "├ 2 ─ clean   after load; mapped, 8 at once\n"
        "│     stats   after load\n"
        "╰ 3 ─ report  after clean & stats\n"
        "      first   after (clean | stats)\n"
        "not in the graph: spare\n"
    )


def test_the_graph_is_drawn_for_mermaid(terminal: Terminal) -> None:
    (terminal.folder / "good.yaml").write_text(GOOD)
    lines = terminal.tsuzuki("flow", "show", "good.yaml", "--mermaid").stdout.splitlines()
    assert lines[0] == "flowchart TD"
    assert '    t1[["clean"]]' in lines
    assert lines[-4:] == ["    j0((any))", "    j0 --> t4", "    t1 -.-> j0", "    t2 -.-> j0"]


def test_a_graph_that_is_wrong_is_not_drawn(terminal: Terminal) -> None:
    (terminal.folder / "bad.yaml").write_text("flow: {graph: a >> a}\ntasks: {a: {callable: f}}\n")
    told = terminal.tsuzuki("flow", "show", "bad.yaml", code=1).stderr
    assert told == (
        "error: invalid workflow yaml: line 1, column 15: the graph runs in a circle: a >> a; "
        "take one of these arrows out [ERR-TSUZUKI-0002]\n"
    )


def test_both_commands_have_help_with_an_example(terminal: Terminal) -> None:
    for command in ("check", "show"):
        assert f"tsuzuki flow {command} pipeline.yaml" in terminal.tsuzuki("flow", command, "--help").stdout
