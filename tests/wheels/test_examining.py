"""What is refused as a wheel, and that the reason is told; names, tags and versions."""

import contextlib
import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.tags import sys_tags

from tests.wheels.making import make_wheel
from tsuzuki.backends.shelf import Wheel
from tsuzuki.wheelerrors import BadWheel, WheelConflict
from tsuzuki.wheels import examining, naming

NAME = "demo-1.0-py3-none-any.whl"


def examined(path: Path, name: str = NAME) -> examining.Found:
    with path.open("rb") as file:
        return examining.examine(file, naming.parse_name(name))


def made(folder: Path, **options: object) -> Path:
    return make_wheel(folder, "demo", "1.0", {"demo.py": "X = 1\n"}, **options)  # type: ignore[arg-type]


def rewritten(path: Path, change: Callable[[zipfile.ZipFile], None]) -> Path:
    """Adds something to an archive."""
    with zipfile.ZipFile(path, "a") as archive:
        change(archive)
    return path


def linked(archive: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("demo/link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(entry, "/etc/passwd")


def test_a_wheel_says_what_it_requires(tmp_path: Path) -> None:
    path = made(tmp_path, requires=["tsuzuki", "other>=2"], python=">=3.11")
    assert examined(path) == (">=3.11", ("tsuzuki", "other>=2"))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda f: f.joinpath(NAME).write_bytes(b"no archive") and f / NAME, "no archive that can be read"),
        (lambda f: made(f, change={"demo-1.0.dist-info/METADATA": b"Name: other\nVersion: 1.0\n"}), "that of 'other'"),
        (lambda f: made(f, change={"demo-1.0.dist-info/METADATA": b"Name: demo\nVersion: 2\n"}), "says version '2'"),
        (lambda f: made(f, change={"demo-1.0.dist-info/WHEEL": b"Wheel-Version: 2.0\n"}), "format is 2.0"),
        (lambda f: made(f, change={"demo.py": b"X = 2\n"}), "'demo.py' is not what RECORD says"),
        (lambda f: made(f, change={"more.py": b""}), "'more.py' is not in RECORD"),
        (lambda f: made(f, change={"../up.py": b""}), "leads elsewhere"),
        (lambda f: made(f, change={"/etc/up.py": b""}), "leads elsewhere"),
        (lambda f: made(f, change={"a\\..\\up.py": b""}), "leads elsewhere"),
        (lambda f: made(f, change={"C:up.py": b""}), "leads elsewhere"),
        (lambda f: made(f, change={"other-1.0.dist-info/METADATA": b""}), "2 folders of metadata"),
        (lambda f: made(f, change={"demo-1.0.dist-info/RECORD": b"gone.py,sha256=x,1\n"}), "which is not in it"),
        (lambda f: made(f, change={"demo-1.0.dist-info/RECORD": b"demo.py,,\n"}), "not in RECORD"),
        (lambda f: made(f, change={"bomb": bytes(80 << 20)}), "bytes when unpacked"),
        (lambda f: rewritten(made(f), linked), "is a link"),
    ],
)
def test_a_file_that_is_no_honest_wheel_is_refused_with_the_reason(
    tmp_path: Path, make: Callable[[Path], Path], why: str
) -> None:
    with pytest.raises(BadWheel, match=f"^invalid wheel file: .*{why}"):
        examined(make(tmp_path))


def test_a_file_that_is_in_it_twice_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        rewritten(path, lambda archive: archive.writestr("demo.py", "X = 2\n"))
    with pytest.raises(BadWheel, match="is in it twice"):
        examined(path)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    content = bytearray(made(tmp_path).read_bytes())
    content[45] ^= 0xFF  # in the compressed bytes of the first file
    with pytest.raises(BadWheel, match="invalid wheel file"):
        examining.examine(io.BytesIO(content), naming.parse_name(NAME))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 10_000), flip=st.integers(1, 255), cut=st.integers(0, 60))
def test_whatever_is_damaged_it_is_refused_in_words_or_harmless(whole: bytes, at: int, flip: int, cut: int) -> None:
    content = bytearray(whole)
    content[at % len(content)] ^= flip
    with contextlib.suppress(BadWheel):
        examining.examine(io.BytesIO(content[: len(content) - cut]), naming.parse_name(NAME))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return made(tmp_path_factory.mktemp("whole")).read_bytes()


@pytest.mark.parametrize(
    "name", ["../x.whl", "a/b-1-py3-none-any.whl", "x.zip", "", ".whl", "x\n.whl", "a" * 300 + ".whl"]
)
def test_what_leads_elsewhere_or_names_no_wheel_is_an_invalid_name(name: str) -> None:
    with pytest.raises(BadWheel, match=r"^invalid wheel name$"):
        naming.parse_name(name)


@pytest.mark.parametrize("name", ["demo.whl", "demo-1.0.whl", "demo-x.y-py3-none-any.whl"])
def test_what_is_not_named_as_wheels_are_is_an_invalid_filename(name: str) -> None:
    with pytest.raises(BadWheel, match=r"^invalid wheel filename"):
        naming.parse_name(name)


def test_tags_are_sorted_and_count_once() -> None:
    assert naming.parse_tags(["b, a,,b", ""]) == ("a", "b")
    with pytest.raises(BadWheel, match=r"^invalid wheel tags$"):
        naming.parse_tags(["a.b"])


def kept(name: str, **more: object) -> Wheel:
    parsed = naming.parse_name(name)
    about = {"package": parsed.package, "version": str(parsed.version), "size": 1, "sha256": ""}
    return Wheel(name=name, nuid=name, **{**about, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "comes", "refused"),
    [
        ("1.9", "1.10", ""),
        ("1.0rc1", "1.0", ""),
        ("1.0", "1.0", "wheel version already exists; bump version"),
        ("1.0", "1.0.0", "wheel version already exists; bump version"),
        ("1.10", "1.9", "wheel version must be greater than existing latest version"),
        ("1.0", "1.0rc1", "wheel version must be greater than existing latest version"),
    ],
)
def test_versions_of_a_package_only_go_up(there: str, comes: str, refused: str) -> None:
    admit = naming.only_upwards(naming.parse_name(f"My.Demo-{comes}-py3-none-any.whl"))
    held = [kept(f"my_demo-{there}-py3-none-any.whl"), kept("other-99-py3-none-any.whl")]
    if not refused:
        admit(held)
        return
    with pytest.raises(WheelConflict, match=f"^{refused}$"):
        admit(held)


def test_a_worker_takes_the_newest_of_each_package_that_its_tags_and_its_python_allow() -> None:
    wheels = [
        kept("a-1.9-py3-none-any.whl"),
        kept("a-1.10-py3-none-any.whl", tags=("red", "green")),
        kept("a-2.0-py3-none-any.whl", tags=("blue",)),
        kept("b-1.0-py3-none-any.whl"),
        kept("b-2.0-cp39-cp39-win_amd64.whl"),
        kept("b-3.0-py3-none-any.whl", requires_python=">=4"),
        kept("own-9-py3-none-any.whl"),
    ]
    chosen = naming.select(wheels, ["red"], frozenset(sys_tags()), "3.11.2", {"own"})
    assert [wheel.name for wheel in chosen.chosen] == ["a-1.10-py3-none-any.whl", "b-1.0-py3-none-any.whl"]
    assert chosen.incompatible == ("b-2.0-cp39-cp39-win_amd64.whl", "b-3.0-py3-none-any.whl", "own-9-py3-none-any.whl")
