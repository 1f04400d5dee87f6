"""The rules of the house: each looks at a tree of files and returns its offences as sentences."""

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path("src/tsuzuki")
WRITER = PACKAGE / "backends/sqlite/writer.py"
SQLITE = PACKAGE / "backends/sqlite"
LEDGERS = [PACKAGE / "apps/ledger.py", PACKAGE / "llm/database.py"]
"""Write files of their own beside the store, each in one place, and nothing in the store."""
SETTINGS = PACKAGE / "settings.py"
CLOCK = PACKAGE / "clock.py"

LONGEST_FUNCTION = 60
LONGEST_FILE = 600
TABLE = 20  # a literal of more lines at the top of a module is a table, and may be as long as it likes

STATEMENT = re.compile(
    r"\s*(?:(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|WITH)\s"
    r"|(?i:select\s.+\sfrom\s|insert\s+into\s|delete\s+from\s|update\s+\w+\s+set\s|create\s+(?:table|index|view)\s))",
    re.DOTALL,
)
CONNECTION_WORD = re.compile(r"\s*(?:PRAGMA|BEGIN|ROLLBACK|SAVEPOINT|VACUUM|ATTACH)(?:\s|;|$)")
COMMIT_WORD = re.compile(r"\bCOMMIT\b")

ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}
ENVIRONMENT_OPTIONS = {"envvar", "auto_envvar_prefix"}  # click reads the environment by these
CLOCKS = {
    *(
        f"time.{name}{suffix}"
        for name in ("time", "monotonic", "perf_counter", "process_time")
        for suffix in ("", "_ns")
    ),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
}

# Spelled in pieces, so that this file does not offend against its own rule.
PLACES = re.compile(
    r"(?<![\w.~])/(?:root|work)/"
    r"|(?<![\w.~])/(?:home|Users)/\w"
    r"|\b(?:pypi|pythonhosted|npmjs|crates)\.(?:org|com|io)\b"
    r"|\b(?:ghcr|docker|quay)\.io\b"
)

FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|/", re.IGNORECASE)
NAMED_PATH = re.compile(r"(?<![\w./:-])((?:[\w.-]+/)+[\w-]+\.(?:py|sql|md|toml))\b")


# ----------------------------------------------------------------------------------------------------- who may do what


def commits_outside_the_writer(root: Path) -> list[str]:
    """Only writer.py commits, and to the file of an application its ledger."""
    return [
        f"{place}: commits; hand the write to {WRITER}, the only code that commits"
        for path in modules(root)
        if path.relative_to(root) not in (WRITER, *LEDGERS)
        for place in (*calls_of(root, path, "commit"), *literals(root, path, COMMIT_WORD.search))
    ]


def sql_outside_sql_files(root: Path) -> list[str]:
    """Only .sql files spell SQL; words about a connection may stand in the SQLite adapter."""
    statements = [
        f"{place}: spells SQL; move the statement to a named query in a .sql file"
        for path in modules(root)
        for place in literals(root, path, STATEMENT.match)
    ]
    connection_words = [
        f"{place}: steers a database connection; only {SQLITE}/ does"
        for path in modules(root)
        if not path.relative_to(root).is_relative_to(SQLITE) and path.relative_to(root) not in LEDGERS
        for place in literals(root, path, CONNECTION_WORD.match)
    ]
    return statements + connection_words


def environment_outside_settings(root: Path) -> list[str]:
    """Only settings.py reads the environment."""
    return [
        f"{place}; only {SETTINGS} reads the environment"
        for path in modules(root)
        if path.relative_to(root) != SETTINGS
        for place in (*uses_of(root, path, ENVIRONMENT), *keywords_of(root, path, ENVIRONMENT_OPTIONS))
    ]


def clocks_outside_clock(root: Path) -> list[str]:
    """Only clock.py reads the clock."""
    return [
        f"{place}; only {CLOCK} reads the clock: take a Clock as an argument"
        for path in modules(root)
        if path.relative_to(root) != CLOCK
        for place in uses_of(root, path, CLOCKS)
    ]


# ----------------------------------------------------------------------------------------------------- words and sizes


def modules_without_an_opening_sentence(root: Path) -> list[str]:
    """Every module opens with one sentence of responsibility."""
    return [
        f"{path.relative_to(root)}: begin with a docstring whose first paragraph is a sentence, ending in a full stop"
        for path in modules(root)
        if not opens_with_a_sentence(ast.get_docstring(parse(path)))
    ]


def opens_with_a_sentence(docstring: str | None) -> bool:
    if not docstring:
        return False
    opening = docstring.split("\n\n")[0].strip()
    return opening.endswith((".", "!", "?")) and not opening[0].islower()


def long_functions(root: Path) -> list[str]:
    """A function fits on a screen."""
    return [
        f"{place(root, path, node)}: {node.name} has {length} lines, more than {LONGEST_FUNCTION}; "
        "split it into steps that have names"
        for path in modules(root)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := lines_of(node) - lines_of_docstring(node)) > LONGEST_FUNCTION
    ]


def long_files(root: Path) -> list[str]:
    """A file holds one idea; tables do not count."""
    return [
        f"{path.relative_to(root)}: {length} lines without its tables, more than {LONGEST_FILE}; "
        "it holds more than one idea: give each its file"
        for path in modules(root)
        if (length := len(path.read_text().splitlines()) - lines_of_tables(parse(path))) > LONGEST_FILE
    ]


def lines_of_tables(tree: ast.Module) -> int:
    tables = (
        node
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Dict | ast.List | ast.Tuple | ast.Set)
    )
    return sum(lines for table in tables if (lines := lines_of(table)) > TABLE)


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def lines_of_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return lines_of(node.body[0]) if ast.get_docstring(node) is not None else 0


# ----------------------------------------------------------------------------------------------------------- documents


def places_of_one_machine(root: Path) -> list[str]:
    """No file names a path of somebody's machine or the host of a package registry."""
    return [
        f"{path.relative_to(root)}:{number}: names {found[0]!r}, which means nothing on another machine"
        for path in files(root)
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if (found := PLACES.search(line))
    ]


def broken_links(root: Path) -> list[str]:
    """Every relative link in a Markdown file leads somewhere."""
    return [
        f"{path.relative_to(root)}: links to {target}, which does not exist"
        for path in files(root, ".md")
        for target in LINK.findall(FENCE.sub("", text_of(path)))
        if not ELSEWHERE.match(target) and not (path.parent / target.partition("#")[0]).exists()
    ]


def files_missing_in_the_architecture(root: Path) -> list[str]:
    """ARCHITECTURE.md says every file of the package in a sentence."""
    text = text_of(root / "ARCHITECTURE.md")
    return [
        f"ARCHITECTURE.md: does not mention {path.relative_to(root)}; say in a sentence what it is for"
        for path in files(root)
        if path.is_relative_to(root / PACKAGE) and path.name != "py.typed"
        if not any(mentions(text, name) for name in names_of(path.relative_to(root / PACKAGE)))
    ]


def names_of(path: Path) -> Iterator[str]:
    """The names under which a document may speak of a file, given relative to the package."""
    yield str(path)
    if path.suffix == ".py" and path.name != "__init__.py":
        yield ".".join(("tsuzuki", *path.with_suffix("").parts))
    if path.name == "__init__.py" and path.parent.parts:
        yield f"{path.parent}/"
        yield ".".join(("tsuzuki", *path.parent.parts))
    if path.parent.name == "migrations":  # numbered, and told of as a folder
        yield f"{path.parent}/"


def mentions(text: str, name: str) -> bool:
    after = r"(?!\w)" if name.endswith("/") else r"(?![\w/]|\.\w)"
    return re.search(rf"(?<![\w./-])(?:(?:src/)?tsuzuki/)?{re.escape(name)}{after}", text) is not None


def documents_that_name_files_long_gone(root: Path) -> list[str]:
    """A path that ARCHITECTURE.md, README.md or CONTRIBUTING.md names exists."""
    known = [f"/{path.relative_to(root)}" for path in files(root)]
    return [
        f"{document}: names {named}, which does not exist"
        for document in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")
        for named in NAMED_PATH.findall(text_of(root / document))
        if not any(path.endswith(f"/{named}") for path in known)
    ]


def commands_missing_in_the_docs(root: Path, commands: list[str]) -> list[str]:
    """Every command is shown in README.md or docs/, as `tsuzuki NAME` or in a list `tsuzuki get | list`."""
    text = user_docs(root)
    shown = {
        " ".join((*words[:-1], *last.split()))
        for listing in re.findall(r"tsuzuki((?: [a-z][\w-]*)+(?: \\?\| [a-z][\w-]*)*)", text)
        for head, *alternatives in [re.split(r" \\?\| ", listing.strip())]
        for words in [head.split()]
        for last in (words[-1], *alternatives)
    }
    told = {" ".join(words[: length + 1]) for line in shown for words in [line.split()] for length in range(len(words))}
    return [
        f"tsuzuki {command}: shown neither in README.md nor in docs/" for command in commands if command not in told
    ]


def settings_missing_in_the_docs(root: Path) -> list[str]:
    """Every environment variable that settings.py knows is told to users."""
    known = sorted(set(re.findall(r"\bTSUZUKI_[A-Z0-9_]*[A-Z0-9]\b", text_of(root / SETTINGS))))
    text = user_docs(root)
    return [
        f"{name}: in {SETTINGS}, but neither in README.md nor in docs/"
        for name in known
        if not re.search(rf"\b{name}\b", text)
    ]


def user_docs(root: Path) -> str:
    """What users read: the README and docs/, without decision records, and references, which are made of the code."""
    docs, apart = root / "docs", ("adr", "reference")
    pages = [path for path in files(root, ".md") if path.is_relative_to(docs) and path.parent.name not in apart]
    return "\n".join(text_of(path) for path in (root / "README.md", *pages))


# ------------------------------------------------------------------------------------------------------------- looking


def files(root: Path, suffix: str = "") -> list[Path]:
    """The files that belong to the project: tracked, or new and not ignored."""
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = [root / name for name in sorted(set(listing.split("\0"))) if name.endswith(suffix)]
    return [path for path in paths if path.is_file()]


def modules(root: Path) -> list[Path]:
    return sorted((root / PACKAGE).rglob("*.py"))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def text_of(path: Path) -> str:
    """The text of a file; of a missing or binary one: nothing."""
    try:
        return path.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def place(root: Path, path: Path, node: ast.expr | ast.stmt) -> str:
    return f"{path.relative_to(root)}:{node.lineno}"


def literals(root: Path, path: Path, matches: Callable[[str], object]) -> Iterator[str]:
    """Places of string literals, f-strings included and docstrings not, that match."""
    tree = parse(path)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and matches(text):
                yield place(root, path, node)


def calls_of(root: Path, path: Path, method: str) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            yield place(root, path, node)


def keywords_of(root: Path, path: Path, names: set[str]) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call):
            yield from (f"{place(root, path, node)}: passes {word.arg}=" for word in node.keywords if word.arg in names)


def uses_of(root: Path, path: Path, names: set[str]) -> Iterator[str]:
    """Places where one of the dotted names is used, under whatever name it was imported."""
    tree = parse(path)
    imported = dict(imports_of(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and (name := full_name(node, imported)) in names:
            yield f"{place(root, path, node)}: uses {name}"


def imports_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def full_name(node: ast.expr, imported: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return imported.get(node.id, "")
    if isinstance(node, ast.Attribute) and (owner := full_name(node.value, imported)):
        return f"{owner}.{node.attr}"
    return ""
