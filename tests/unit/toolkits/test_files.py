"""The files toolkit, on real folders."""

import os
import threading
from pathlib import Path

import pytest

from toolplan.errors import ToolFailed, UsageError
from toolplan.toolkits import files
from toolplan.toolkits.files import FileText, Match
from toolplan.tools import ToolSet


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config.py").write_text("hidden")
    (root / "a.py").write_text("import os\n\nprint('a')\n")
    (root / "src" / "b.py").write_text("b" * 500)
    (root / "src" / "deep" / "c.py").write_text("c" * 900)
    (root / "src" / "notes.md").write_text("第一行\r\n第二行 Needle\r\n", newline="")
    (tmp_path / "secret.txt").write_text("secret")
    return root


@pytest.fixture
def tools(root: Path) -> ToolSet:
    return ToolSet.of(files(root, max_bytes=2_000))


def test_listing_gives_sizes_in_order_of_paths_without_what_is_hidden(tools: ToolSet) -> None:
    found = tools["list_files"]()
    assert [(f.path, f.size) for f in found] == [
        ("a.py", 22), ("src/b.py", 500), ("src/deep/c.py", 900), ("src/notes.md", 29)
    ]  # fmt: skip
    assert found[1].name == "b.py"
    assert found[1].modified[4] == "-"


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"pattern": "*.py"}, ["a.py", "src/b.py", "src/deep/c.py"]),
        ({"pattern": "**/*.py"}, ["a.py", "src/b.py", "src/deep/c.py"]),
        ({"pattern": "src/*.py"}, ["src/b.py"]),
        ({"pattern": "*.py", "recursive": False}, ["a.py"]),
        ({"folder": "src", "pattern": "*.py"}, ["src/b.py", "src/deep/c.py"]),
        ({"folder": "./src/deep/"}, ["src/deep/c.py"]),
        ({"pattern": "*.rs"}, []),
    ],
)
def test_patterns_and_folders_choose(tools: ToolSet, arguments: dict[str, object], paths: list[str]) -> None:
    assert [file.path for file in tools["list_files"](**arguments)] == paths


def test_reading_whole_and_from_the_beginning(tools: ToolSet) -> None:
    assert tools["read_file"](path="a.py") == FileText("a.py", "import os\n\nprint('a')\n", 3, True, "utf-8")
    assert tools["read_file"](path="./a.py", first_lines=2) == FileText("a.py", "import os\n\n", 2, False, "utf-8")
    assert tools["read_file"](path="a.py", first_lines=3).complete
    assert tools["read_file"](path="src/notes.md").text == "第一行\r\n第二行 Needle\r\n"
    with pytest.raises(ToolFailed, match="at least 1"):
        tools["read_file"](path="a.py", first_lines=0)


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("你好，世界".encode("gb18030"), "你好，世界", "gb18030"),
        ("\ufeffhi".encode(), "hi", "utf-8-sig"),
        ("你好".encode("utf-16"), "你好", "utf-16"),
        ("你好".encode("utf-32"), "你好", "utf-32"),
        (b"", "", "utf-8"),
    ],
)
def test_the_encoding_is_found(tools: ToolSet, root: Path, data: bytes, text: str, encoding: str) -> None:
    (root / "text").write_bytes(data)
    read = tools["read_file"](path="text")
    assert (read.text, read.encoding) == (text, encoding)


def test_what_is_not_text_is_refused(tools: ToolSet, root: Path) -> None:
    (root / "image").write_bytes(b"\x89PNG\0\0\0")
    (root / "odd").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ToolFailed, match="`image` is not a text file"):
        tools["read_file"](path="image")
    with pytest.raises(ToolFailed, match="`odd` is not text in utf-8 or gb18030"):
        tools["read_file"](path="odd")


def test_a_large_file_is_read_from_the_beginning_only(tools: ToolSet, root: Path) -> None:
    (root / "large").write_text("é" * 10 + "\n" + "é" * 3_000)
    with pytest.raises(ToolFailed, match="6,021 bytes, more than the 2,000"):
        tools["read_file"](path="large")
    assert tools["read_file"](path="large", first_lines=1).text == "é" * 10 + "\n"
    cut = tools["read_file"](path="large", first_lines=5)  # the cut at 2,000 bytes is within a character
    assert (cut.lines, cut.complete, len(cut.text)) == (2, False, 11 + 989)


@pytest.mark.parametrize("path", ["../secret.txt", "src/../../secret.txt", "/etc/passwd", "out.txt", "away/secret.txt"])
def test_nothing_outside_the_root_is_read_or_written(tools: ToolSet, root: Path, tmp_path: Path, path: str) -> None:
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "away").symlink_to(tmp_path)
    with pytest.raises(ToolFailed, match="is outside of the folder"):
        tools["read_file"](path=path)
    for mode in ("create", "overwrite", "append"):
        with pytest.raises(ToolFailed, match="is outside of the folder") as failure:
            tools["write_file"](path=path, text="x", mode=mode)
        assert failure.value.effect_happened is False
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert "secret" not in str(tools["search_files"](text="secret"))
    assert [f.path for f in tools["list_files"](pattern="*.txt")] == []
    with pytest.raises(ToolFailed, match="is outside"):
        tools["list_files"](folder="away")


def test_links_that_stay_inside_are_followed_to_files(tools: ToolSet, root: Path) -> None:
    (root / "link.py").symlink_to("src/b.py")
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to(root)
    assert tools["read_file"](path="link.py").path == "src/b.py"
    assert [f.path for f in tools["list_files"](pattern="*.py")] == ["a.py", "link.py", "src/b.py", "src/deep/c.py"]
    with pytest.raises(ToolFailed, match="`loop`"):
        tools["read_file"](path="loop")


def test_searching_finds_lines_whatever_the_case(tools: ToolSet, root: Path) -> None:
    (root / "binary").write_bytes(b"needle\0")
    assert tools["search_files"](text="NEEDLE") == [Match("src/notes.md", 2, "第二行 Needle")]
    assert tools["search_files"](text="第", limit=1) == [Match("src/notes.md", 1, "第一行")]
    assert tools["search_files"](text="needle", pattern="*.py") == []
    assert tools["search_files"](text=".*") == []
    with pytest.raises(ToolFailed, match="nothing to search for"):
        tools["search_files"](text=" ")


def test_writing_creates_replaces_and_appends(tools: ToolSet, root: Path) -> None:
    write = tools["write_file"]
    written = write(path="new/folder/新.txt", text="一\n")
    assert (written.path, written.size, written.created) == ("new/folder/新.txt", 4, True)
    with pytest.raises(ToolFailed, match="exists"):
        write(path="new/folder/新.txt", text="lost")
    assert write(path="new/folder/新.txt", text="二\n", mode="append").size == 8
    os.chmod(root / "new/folder/新.txt", 0o640)
    assert not write(path="new/folder/新.txt", text="三", mode="overwrite").created
    assert (root / "new/folder/新.txt").read_text() == "三"
    assert (root / "new/folder/新.txt").stat().st_mode & 0o777 == 0o640
    assert write(path="fresh", text="x", mode="overwrite").created
    assert os.listdir(root / "new/folder") == ["新.txt"]


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("src", "x", "is a folder"),
        (".", "x", "is a folder"),
        ("big", "x" * 2_001, "more than 2,000 bytes"),
        ("odd", "\ud800", "cannot be written"),
        ("a.py/below", "x", "the folder of `a.py/below` cannot be made"),
        ("a\0b", "x", "zero character"),
    ],
)
def test_what_cannot_be_written_says_why(tools: ToolSet, path: str, text: str, message: str) -> None:
    with pytest.raises(ToolFailed, match=message):
        tools["write_file"](path=path, text=text)


def test_of_two_that_create_the_same_file_one_wins(tools: ToolSet, root: Path) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(8)

    def create(text: str) -> None:
        barrier.wait()
        try:
            tools["write_file"](path="race", text=text * 1_000)
            outcomes.append(text)
        except ToolFailed:
            pass

    threads = [threading.Thread(target=create, args=(letter,)) for letter in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert (root / "race").read_text() == outcomes[0] * 1_000
    assert not [name for name in os.listdir(root) if name.endswith(".part")]


def test_missing_files_and_folders_are_named(tools: ToolSet) -> None:
    with pytest.raises(ToolFailed, match="there is no file `gone"):
        tools["read_file"](path="gone.txt")
    with pytest.raises(ToolFailed, match="`src` is not a file"):
        tools["read_file"](path="src")
    with pytest.raises(ToolFailed, match="there is no folder `gone`"):
        tools["list_files"](folder="gone")


def test_the_root_must_be_a_folder_and_writing_can_be_left_out(root: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        files(root / "a.py")
    with pytest.raises(UsageError, match="no encoding is named 'klingon'"):
        files(root, encodings=("klingon",))
    assert ToolSet.of(files(root, writable=False)).names == ("list_files", "read_file", "search_files")
    assert ToolSet.of(files(root))["write_file"].approval == "ask"
    assert ToolSet.of(files(root, approval="allow"))["write_file"].approval == "allow"


def test_a_write_and_a_read_of_any_name_conflict(tools: ToolSet) -> None:
    write = tools["write_file"].effects.accesses({"path": "a.py"})
    read = tools["read_file"].effects.accesses({"path": "./a.py"})
    assert write[0].resource == read[0].resource == ("files",)
    assert write[0].write
    assert not read[0].write
