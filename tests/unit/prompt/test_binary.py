"""A model is told of files in values; everything else is shown as it is."""

import base64
import json
import random
import zlib

import pytest

from toolplan.prompt.binary import without_files
from toolplan.prompt.chinese import CHINESE
from toolplan.prompt.english import ENGLISH

NOISE = random.Random(1).randbytes(3_000)
TEXT = base64.b64encode(NOISE).decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(2_000)).decode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (TEXT, "[binary data, 3000 bytes, not shown]"),
        (base64.urlsafe_b64encode(NOISE).decode().rstrip("="), "[binary data, 3000 bytes, not shown]"),
        (base64.encodebytes(NOISE).decode(), "[binary data, 3000 bytes, not shown]"),
        (PNG, "[image/png, 2008 bytes, not shown]"),
        (base64.b64encode(b"RIFF\0\0\0\0WEBP" + NOISE).decode(), "[image/webp, 3012 bytes, not shown]"),
        (base64.b64encode(b"%PDF-1.7" + NOISE).decode(), "[application/pdf, 3008 bytes, not shown]"),
        (f"data:image/jpeg;base64,{TEXT}", "[image/jpeg, 3000 bytes, not shown]"),
        (f"see ![x](data:;base64,{TEXT}) there", "see ![x]([binary data, 3000 bytes, not shown]) there"),
        ([1, {"a": TEXT}], [1, {"a": "[binary data, 3000 bytes, not shown]"}]),
        (
            {"type": "audio", "mimeType": "audio/wav", "data": TEXT},
            {"type": "audio", "mimeType": "audio/wav", "data": "[audio/wav, 3000 bytes, not shown]"},
        ),
    ],
)
def test_files_are_not_shown(value, shown):
    assert without_files(value, ENGLISH) == shown


def test_in_chinese():
    assert without_files([TEXT], CHINESE) == ["[二进制数据，3000 字节，未显示]"]


@pytest.mark.parametrize(
    "value",
    [
        "x" * 100_000,
        "0123456789abcdef" * 100,
        "The quick brown fox jumps over 13 lazy dogs. " * 50,
        "word\n" * 500,
        "\n".join(f"Line{n}OfTheFile" for n in range(200)),
        "".join(f"/Some/Path/Number{n}" for n in range(50)),
        "lowercaseonlywithoutanyspacebutverylong" * 20,
        "天气" * 500,
        json.dumps({"a": list(range(300))}),
        "eyJhbGciOiJIUzI1NiJ9." * 3,
        TEXT[:200],
        {"contentType": "text/html", "body": "<html>" + "<p>text</p>" * 100},
        zlib.crc32(NOISE),
        None,
    ],
)
def test_everything_else_is(value):
    assert without_files(value, ENGLISH) is value
