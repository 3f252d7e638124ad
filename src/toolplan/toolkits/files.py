"""Files below one folder: list, read, search, write. Nothing outside the folder can be reached.

Paths are written relative to the root, with `/`; an absolute path is accepted when it leads below the root. A path is
followed to where it really leads, symbolic links included, before anything is opened, and refused if that is outside.
(Whoever can change links below the root while a tool runs can still trick it; these tools make no links.)

All four tools declare the whole folder as their resource: two names may mean one file (`a.txt`, `./a.txt`, a link, a
file system without case), so nothing smaller would keep a write and a later read in order.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime as dt
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from toolplan.errors import ToolFailed, UsageError
from toolplan.tools import Tool, ToolSet, tool

__all__ = ["FileInfo", "FileText", "Match", "Written", "files"]

_MOST_FILES = 20_000
_PEEK = 8_192
"""A zero byte among the first so many means that a file is not text."""
_LONGEST_LINE = 500
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class FileInfo:
    """A file. `size` is in bytes, `modified` local time in ISO text."""

    path: str
    name: str
    size: int
    modified: str


@dataclass(frozen=True)
class FileText:
    """The text of a file, or the beginning of it. `complete` is false when there is more."""

    path: str
    text: str
    lines: int
    complete: bool
    encoding: str


@dataclass(frozen=True)
class Match:
    """A line that contains what was searched for; `line_number` counts from 1."""

    path: str
    line_number: int
    line: str


@dataclass(frozen=True)
class Written:
    """What was written. `size` is that of the whole file in bytes."""

    path: str
    size: int
    created: bool


def files(
    root: str | Path,
    *,
    writable: bool = True,
    approval: Literal["allow", "ask", "deny"] = "ask",
    max_bytes: int = 1_000_000,
    encodings: tuple[str, ...] = ("utf-8", "gb18030"),
) -> list[Tool]:
    """Return the tools `list_files`, `read_file`, `search_files` and, if `writable`, `write_file`.

    All work below the folder `root` only. Text is read by its byte order mark, else in the first of `encodings` that
    fits, and written in UTF-8; no more than `max_bytes` of a file are ever read or written. A person is asked before
    something is written unless `approval` says otherwise. Raises `UsageError` when `root` is not a folder.
    """
    if not Path(root).is_dir():
        raise UsageError(f"`{root}` is not a folder; write files('.') for the current one")
    for encoding in encodings:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise UsageError(f"no encoding is named {encoding!r}") from None
    below = _Folder(Path(root).resolve(), max_bytes, encodings)

    @tool(reads="files")
    def list_files(folder: str = ".", pattern: str = "*", recursive: bool = True) -> list[FileInfo]:
        """Lists files with their sizes, in order of their paths. Hidden files and folders are left out.

        Args:
            folder: The folder.
            pattern: What the file's name, or the end of its path, looks like: "*.py", "docs/*.md".
            recursive: Also in the folders below.
        """
        return [below.info(file) for file in below.find(folder, pattern, recursive=recursive)]

    @tool(reads="files", untrusted=True)
    def read_file(path: str, first_lines: int | None = None) -> FileText:
        """Reads a text file.

        Args:
            path: The path.
            first_lines: Only so many lines from the beginning.
        """
        return below.read(path, first_lines)

    @tool(reads="files", untrusted=True)
    def search_files(text: str, folder: str = ".", pattern: str = "*", limit: int = 200) -> list[Match]:
        """Finds the lines that contain a text, whatever the case, in all text files of a folder and below.

        Args:
            text: What to look for; not a pattern.
            folder: The folder.
            pattern: What the names of the files, or the ends of their paths, look like.
            limit: So many lines at most.
        """
        return below.search(text, folder, pattern, limit)

    @tool(writes="files", approval=approval, guarded="path")
    def write_file(path: str, text: str, mode: Literal["create", "overwrite", "append"] = "create") -> Written:
        """Writes a text file. Folders that are missing are made.

        Args:
            path: The path.
            text: The text.
            mode: "create" fails when the file exists, "overwrite" replaces it, "append" adds to its end.
        """
        return below.write(path, text, mode)

    reading = [list_files, read_file, search_files]
    return list(ToolSet.of([*reading, write_file] if writable else reading))


class _Folder:
    """The folder that everything stays inside of."""

    def __init__(self, root: Path, max_bytes: int, encodings: tuple[str, ...]) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._encodings = encodings

    def locate(self, path: str) -> Path:
        """Return where `path` really leads. Raises `ToolFailed` when that is outside of the root."""
        if "\0" in path:
            raise ToolFailed("a path holds a zero character", effect_happened=False)
        try:
            real = (self._root / path).resolve()
        except (OSError, RuntimeError) as error:  # a link that leads to itself
            raise ToolFailed(f"`{path}` leads nowhere: {error}", effect_happened=False) from None
        if not real.is_relative_to(self._root):
            raise ToolFailed(f"`{path}` is outside of the folder that may be used", effect_happened=False)
        return real

    def name(self, file: Path) -> str:
        """Return the path of a file as the tools write it."""
        return file.relative_to(self._root).as_posix()

    def info(self, file: Path) -> FileInfo:
        """Return what is known about a file."""
        status = file.stat()
        modified = dt.datetime.fromtimestamp(int(status.st_mtime)).isoformat()
        return FileInfo(self.name(file), file.name, status.st_size, modified)

    def find(self, path: str, pattern: str, *, recursive: bool) -> list[Path]:
        """Return the regular files below `path` that fit `pattern`. Links to folders are not followed."""
        start = self.locate(path)
        if not start.is_dir():
            raise ToolFailed(f"there is no folder `{path}`", effect_happened=False)
        wanted = pattern.removeprefix("./")
        while wanted.startswith("**/"):
            wanted = wanted[3:]
        found: list[Path] = []
        for where, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if not name.startswith(".")) if recursive else []
            for name in names:
                file = Path(where, name)
                if name.startswith(".") or not PurePosixPath(self.name(file)).match(wanted or "*"):
                    continue
                if self._is_inside(file):
                    found.append(file)
            if len(found) > _MOST_FILES:
                raise ToolFailed(f"more than {_MOST_FILES:,} files fit; name a folder or a pattern")
        return sorted(found)

    def _is_inside(self, file: Path) -> bool:
        if file.is_symlink() and not file.resolve().is_relative_to(self._root):
            return False
        return file.is_file()

    def read(self, path: str, first_lines: int | None) -> FileText:
        """Return the text of a file, or its first lines."""
        if first_lines is not None and first_lines < 1:
            raise ToolFailed(f"`first_lines` is {first_lines}; it must be at least 1", effect_happened=False)
        file = self.locate(path)
        data, whole = self._bytes(file, path)
        if not whole and first_lines is None:
            raise ToolFailed(
                f"`{path}` has {file.stat().st_size:,} bytes, more than the {self._max_bytes:,} that are read at once;"
                " ask for its first lines",
                effect_happened=False,
            )
        text, encoding = self._decode(data, path, whole=whole)
        lines = _lines(text)
        kept = lines if first_lines is None else lines[:first_lines]
        return FileText(self.name(file), "".join(kept), len(kept), whole and len(kept) == len(lines), encoding)

    def search(self, text: str, path: str, pattern: str, limit: int) -> list[Match]:
        """Return the first `limit` lines that contain `text`; files that are not text are passed over."""
        wanted = text.casefold()
        if not wanted.strip():
            raise ToolFailed("there is nothing to search for", effect_happened=False)
        found: list[Match] = []
        for file in self.find(path, pattern, recursive=True):
            name = self.name(file)
            with contextlib.suppress(ToolFailed):
                content, _ = self._decode(self._bytes(file, name)[0], name, whole=False)
                for number, line in enumerate(_lines(content), 1):
                    if wanted in line.casefold():
                        found.append(Match(name, number, line.strip()[:_LONGEST_LINE]))
                        if len(found) >= limit:
                            return found
        return found

    def write(self, path: str, text: str, mode: str) -> Written:
        """Write a file so that it is there whole or not at all (`append` excepted)."""
        file = self.locate(path)
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise ToolFailed(f"the text cannot be written: {error}", effect_happened=False) from None
        existed = file.exists()
        if file == self._root or file.is_dir():
            raise ToolFailed(f"`{path}` is a folder", effect_happened=False)
        if existed and mode == "create":
            raise ToolFailed(f'`{path}` exists; use mode "overwrite" or "append"', effect_happened=False)
        if len(data) + (file.stat().st_size if existed and mode == "append" else 0) > self._max_bytes:
            raise ToolFailed(f"`{path}` would have more than {self._max_bytes:,} bytes", effect_happened=False)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolFailed(
                f"the folder of `{path}` cannot be made: {error.strerror}", effect_happened=False
            ) from error
        try:
            if mode == "append":
                with open(file, "ab") as target:
                    target.write(data)
            else:
                _put(data, file, replace=mode == "overwrite")
        except FileExistsError:
            raise ToolFailed(f'`{path}` exists; use mode "overwrite" or "append"', effect_happened=False) from None
        except OSError as error:
            raise ToolFailed(f"`{path}` cannot be written: {error.strerror}") from error
        return Written(self.name(file), file.stat().st_size, created=not existed)

    def _bytes(self, file: Path, path: str) -> tuple[bytes, bool]:
        try:
            if not file.is_file():
                raise ToolFailed(f"there is no file `{path}`" if not file.exists() else f"`{path}` is not a file")
            with open(file, "rb") as source:
                data = source.read(self._max_bytes + 1)
        except OSError as error:
            raise ToolFailed(f"`{path}` cannot be read: {error.strerror}") from error
        return data[: self._max_bytes], len(data) <= self._max_bytes

    def _decode(self, data: bytes, path: str, *, whole: bool) -> tuple[str, str]:
        for bom, encoding in _BOMS:
            if data.startswith(bom):
                return self._decoded(data, (encoding,), path, whole=whole)
        if b"\0" in data[:_PEEK]:
            raise ToolFailed(f"`{path}` is not a text file", effect_happened=False)
        return self._decoded(data, self._encodings, path, whole=whole)

    def _decoded(self, data: bytes, encodings: tuple[str, ...], path: str, *, whole: bool) -> tuple[str, str]:
        for encoding in encodings:
            # Incremental, because a file that was cut may end within a character.
            decoder = codecs.getincrementaldecoder(encoding)()
            try:
                return decoder.decode(data, final=whole), encoding
            except UnicodeDecodeError:
                continue
        raise ToolFailed(f"`{path}` is not text in {' or '.join(encodings)}", effect_happened=False)


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, cut at line ends only (`splitlines` also cuts at form feeds)."""
    return _LINE.findall(text)


def _put(data: bytes, target: Path, *, replace: bool) -> None:
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            file.write(data)
        if replace:
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(target, part)
            os.replace(part, target)
        else:
            os.link(part, target)
    finally:
        part.unlink(missing_ok=True)
