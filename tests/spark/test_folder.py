"""Folders that a build may not write into, and what it says then."""

import pytest

from dynhac.spark import build
from dynhac.spark.folder import Folder, reason

EDGES = [(1, 2, 0.5), (2, 3, 0.25)]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", r"^path is ''; it must be a folder$"),
        ("//", r"^path is '//'; it must be a folder$"),
        (" ", r"^path is ' '; it must be a folder$"),
        ("trees/a*", r"must not have '\*', which Spark takes for a pattern$"),
        ("tree[1]", r"must not have '\['"),
        (None, r"^path is None; it must be a str or a path$"),
        (b"tree", r"^path is b'tree'; it must be a str or a path$"),
    ],
)
def test_a_path_that_is_wrong(path, message):
    with pytest.raises(ValueError, match=message):
        Folder(None, path)


def test_files_of_something_else_are_left_alone(spark, tmp_path):
    edges = spark.createDataFrame(EDGES, "u long, v long, w double")
    (tmp_path / "vertices").mkdir()
    other = tmp_path / "vertices" / "notes.txt"
    other.write_text("mine")
    with pytest.raises(ValueError, match="has files that are not of a build"):
        build(edges, path=tmp_path)
    assert other.read_text() == "mine"
    other.unlink()
    (tmp_path / "meta").write_text("[1]")
    with pytest.raises(ValueError, match="has files that are not of a build"):
        build(edges, path=tmp_path)
    (tmp_path / "meta").unlink()
    assert build(edges, path=tmp_path).n_merges == 2


def test_a_path_that_cannot_be_written_to_is_one_line(spark, tmp_path):
    edges = spark.createDataFrame(EDGES, "u long, v long, w double")
    (tmp_path / "file").write_text("mine")
    for path, message in (
        (tmp_path / "file", "has files that are not of a build"),
        (tmp_path / "file" / "tree", "cannot be used: .*not a directory"),
        ("nowhere://a/b", "nowhere://a/b cannot be used: .*No FileSystem for scheme"),
    ):
        with pytest.raises((OSError, ValueError), match=message) as caught:
            build(edges, path=path)
        assert "\n" not in str(caught.value)


def test_the_reason_of_an_error_of_java():
    error = RuntimeError("An error occurred while calling o1.x.\n: java.io.IOException: No\n\tat y")
    assert reason(error) == "java.io.IOException: No"
    assert reason(KeyError()) == "KeyError"
