"""What stands in a request stands there as a whole: no part of a path, an address, a name or a number was said."""

from __future__ import annotations

import time

import pytest

from toolplan.policy.dates import holds_dates
from toolplan.policy.said import unsaid


def is_said(word: object, request: str) -> bool:
    return unsaid((word,), request) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "request_", "said"),
    [
        ("/", "Delete the logs", False),
        ("*", "Delete the logs", False),
        ("~", "Tidy up ~/x", False),
        ("..", "Delete ../x", False),
        ("--", "Run it --fast", False),
        ("", "Delete it", False),
        ("$", "Pay $5", False),
        ("/*", "Delete /tmp/*", False),
        (".", "Delete it.", False),
        ("%", "5% of it", False),
        ("👍", "Like it", False),
        ("/", "List / please", True),
        ("*", "Delete '*' there", True),
        ("..", "Go to ..", True),
        ("*", "删除 * 吧", True),
        ("/*", "Delete /*.", True),
        ("👍", "React with 👍", True),
        ("~", "What is in ~?", True),
    ],
)
def test_signs_alone_have_to_stand_there_by_themselves(word: str, request_: str, said: bool) -> None:
    assert is_said(word, request_) is said


@pytest.mark.parametrize(
    ("word", "request_", "said"),
    [
        ("/home/me", "Delete /home/me/x.txt", False),
        ("/home", "Delete /home/me/x.txt", False),
        ("home", "Delete /home/me/x.txt", False),
        ("/x.txt", "Delete /home/me/x.txt", False),
        ("x.txt", "Delete /home/me/x.txt", False),
        ("s3://bucket", "Delete s3://bucket/a/b.txt", False),
        ("bucket", "Delete s3://bucket/a/b.txt", False),
        ("feature", "Delete feature/login", False),
        ("me", "Delete me/proj", False),
        ("C:\\Users", "Delete C:\\Users\\me", False),
        ("x", "Delete x*", False),
        ("C", "Delete C:\\Users", False),
        (".env", "Delete env", False),
        ("env", "Delete .env", False),
        ("logs", "Drop old.logs", False),
        ("https://a.org", "Fetch https://a.org/x", False),
        ("https://a.org", "Fetch https://a.org?x=1", False),
        ("a.org", "Fetch https://a.org:80/x", False),
        ("//bucket/a", "Delete s3://bucket/a", False),
        ("HOME", "echo $HOME", False),
        ("x", "Delete ~x", False),
        ("/home/me/x.txt", "Delete /home/me/x.txt.", True),
        ("/home/me", "Delete '/home/me' now", True),
        ("/home/me", "Delete /home/me/ now", True),
        ("/home/me/", "Delete /home/me", False),
        ("/home/me", "Delete path:/home/me", True),
        ("/home/me", "路径：/home/me，谢谢", True),
        ("https://a.org/x", "Fetch https://a.org/x.", True),
        ("a.org", "Fetch https://a.org", True),
        ("Ann", "Pay **Ann** 5", True),
        ("ann@x.org", "给ann@x.org发邮件", True),
        ("Ann", "给Ann发邮件", True),
        ("feature/login", "Delete (feature/login)", True),
        ("Ann", "Pay Ann's bill", True),
        ("Bob", "Ann, Bob: come", True),
    ],
)
def test_a_part_of_a_path_or_an_address_is_another_one(word: str, request_: str, said: bool) -> None:
    assert is_said(word, request_) is said


@pytest.mark.parametrize(
    ("word", "request_", "said"),
    [
        ("张三", "付给张三丰五元", False),
        ("三丰", "付给张三丰五元", False),
        ("京大", "删除北京大学的文件", False),
        ("北京", "删除北京大学的文件", False),
        ("大学", "删除北京大学的文件", False),
        ("王小", "给王小明发邮件", False),
        ("明", "给王小明发邮件", False),
        ("四和", "发给李四和王五", False),
        ("张三丰", "付给张三丰五元", True),
        ("北京大学", "删除北京大学的文件", True),
        ("王小明", "给 王小明 发邮件", True),
        ("李四", "发给李四和王五", True),
        ("王五", "发给李四和王五", True),
        ("张三", "转给张三两百块", True),
        ("北京饭店", "预订北京饭店，明天入住", True),
        ("张三", "联系人：张三。", True),
        ("李四", "通知李四明天开会", True),
        ("/文件/报告", "删除 /文件/报告/旧的", False),
        ("报告", "删除 /文件/报告/旧的", False),
        ("/报告", "删除 资料/报告", False),
        ("报告.txt", "删除报告.txt.bak", False),
        ("报告", "删除报告*", False),
        ("/文件/报告", "删除/文件/报告，谢谢", True),
        ("报告.txt", "删除报告.txt。", True),
        ("张三", "张三：你好", True),
        ("张三", "好吗？张三，来", True),
    ],
)
def test_a_part_of_a_chinese_name_is_another_name(word: str, request_: str, said: bool) -> None:
    assert is_said(word, request_) is said


@pytest.mark.parametrize(
    ("word", "request_", "said"),
    [
        ("bob@x.org", "Don't send it to bob@x.org.", False),
        ("bob@x.org", "Please do not mail bob@x.org, mail Ann", False),
        ("bob@x.org", "不要发给 bob@x.org，发给 ann@x.org", False),
        ("admin", "Give Bob read access, not admin", False),
        (500, "Never pay more than 500.", False),
        ("ann@x.org", "Don't write to bob@x.org but to ann@x.org", True),
        ("ann@x.org", "不要发给 bob@x.org，发给 ann@x.org", True),
        ("bob@x.org", "Don't forget to mail bob@x.org", True),
        ("bob@x.org", "Mail bob@x.org. Don't call.", True),
        ("李四", "别忘了通知李四", True),
        (99, "Pay ann99@x.org", False),
        (99, "Pay ann99", False),
        (5, "See https://x.org/5", False),
        (17, "Pay A-17", True),
        (5000, "Pay USD5000", True),
        (500, "Pay 1 500", False),
        (1500, "Pay 1 500", True),
        (12, "Pay 12 500 3 times", False),
        ("5678", "card 1234 5678 9012 3456", False),
        ("1234567890123456", "card 1234 5678 9012 3456", True),
        ("1234 5678 9012 3456", "card 1234567890123456", True),
        ("DE89370400440532013000", "Pay DE89 3704 0044 0532 0130 00 now", True),
        ("DE89 3704", "Pay DE89 3704 0044 0532 0130 00 now", False),
    ],
)
def test_what_is_not_to_be_done_and_parts_of_numbers_were_not_said(word: object, request_: str, said: bool) -> None:
    assert is_said(word, request_) is said


@pytest.mark.parametrize(
    ("part", "word"), [("张三", "三张"), ("a", "b"), ("不要", "张三"), ("**a", "b"), ("1 500 ", "7")]
)
def test_a_long_request_takes_no_time(part: str, word: str) -> None:
    began = time.process_time()
    assert not is_said(word, part * 30_000 + "。")
    assert time.process_time() - began < 5


def test_as_wording_only_signs_that_do_something_are_looked_up() -> None:
    for text in ("!", "👍", "...", "?"):
        assert unsaid((text,), "go", "wording") == []
    for text in ("/", "*", "..", "--", "~", "$"):
        assert unsaid((text,), "go", "wording") == [text]


@pytest.mark.parametrize(
    ("name", "schema", "dates"),
    [
        ("path", {}, False),
        ("to", {"type": "string"}, False),
        ("start_time", {}, True),
        ("dueDate", {}, True),
        ("when", {"format": "date-time"}, True),
        ("x", {"format": "date"}, True),
        ("日期", {}, True),
        ("update", {}, False),
        ("x", {"anyOf": [{"format": "date"}, {"type": "null"}]}, True),
        ("x", {"format": "path"}, False),
        ("event", {"properties": {"start": {"type": "string"}}}, True),
        ("x", {"items": {"format": "time"}}, True),
    ],
)
def test_arguments_that_are_for_dates_say_so(name: str, schema: dict[str, object], dates: bool) -> None:
    assert holds_dates(name, schema) is dates
