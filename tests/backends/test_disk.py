"""Files that go while they are looked at: others purge meanwhile."""

from pathlib import Path

from tsuzuki.backends import disk


def test_a_file_that_is_gone_meanwhile_has_no_size_and_no_age(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    kept.write_bytes(b"12345")
    assert disk.size([kept, gone]) == 5
    assert disk.age(gone, 1e9) == 0.0
    assert disk.age(kept, kept.stat().st_mtime + 7) == 7
