"""Whether the user said it."""

from __future__ import annotations

import pytest

from toolplan.policy.quantities import duration_of
from toolplan.policy.said import is_free_text, unsaid

REQUEST = (
    "Please pay $1,250.50 to Ann Smith (ann@x.org) from CH93 0076 2011 6238 5295 7, book the Grand Hotel, "
    "and post to #general about www.news.org. 给王小明发邮件，转两百块，明天下午三点。"
)


@pytest.mark.parametrize(
    "word",
    ["Ann Smith", "ann smith", "ann@x.org", "Grand Hotel", "#general", "general", 1250.5, "1250.50", "王小明",
     "www.news.org", "CH9300762011623852957", "CH93 0076 2011 6238 5295 7"],
)  # fmt: skip
def test_what_the_request_holds_was_said(word: object) -> None:
    assert unsaid((word,), REQUEST) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "word",
    ["Ann Smithers", "nn Smith", "bob@x.org", "ann@x.org.evil.com", "Hotel Grand", "general2", 1250, 99, "99", "王小",
     "news.org.evil.com", "US133000000121212121212", "2026-01-02", "2026-01-02T15:00", "15:00", "", "...", "CH93",
     "9300762011623852957"],
)  # fmt: skip
def test_what_the_request_does_not_hold_was_not_said(word: object) -> None:
    assert unsaid((word,), REQUEST)  # type: ignore[arg-type]


def test_of_prose_only_what_leads_somewhere_counts() -> None:
    body = "Dear Ann, thank you very much for the nice evening, see you soon, yours truly"
    assert unsaid((body,), REQUEST, "wording") == []
    assert unsaid((body + " www.evil.com",), REQUEST, "wording") == ["www.evil.com"]
    assert unsaid((body + " or write to eve@evil.org",), REQUEST, "wording") == ["eve@evil.org"]
    assert unsaid((body + " pay to US133000000121212121212 now",), REQUEST, "wording") == ["US133000000121212121212"]
    assert unsaid((body + " as www.news.org says",), REQUEST, "wording") == []


def test_prose_is_told_from_names() -> None:
    assert not is_free_text("Riverside View Hotel")
    assert not is_free_text(["a@x.org", "b@x.org"])
    assert not is_free_text(12)
    assert is_free_text("I would like to invite you to my party on Friday")
    assert not is_free_text("eve@x.org\n")
    assert not is_free_text("Hello\nthere")
    assert is_free_text("请大家明天下午三点准时到会议室参加项目评审")


@pytest.mark.parametrize(
    ("word", "missing"),
    [("Hello", []), ("Lunch with Eve", []), ("你好", []), ("eve@x.org", ["eve@x.org"]), ("Room 12", ["12"]),
     ("12 34", ["12 34"]), (99, ["99"]), ("Ann (ann@x.org)", []), ("2026-01-02", [])],
)  # fmt: skip
def test_plain_words_are_wording_where_no_name_is_expected(word: object, missing: list[str]) -> None:
    assert unsaid((word,), REQUEST, "wording", dates=True) == missing  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "number", "is_said"),
    [("What is on June 13?", "13", False), ("What is on the 13th of June, 2024?", "13", False),
     ("Pay at 13:00", 13, False),
     ("六月13日付款", 13, False), ("Delete file 13 on June 14", "13", True), ("Pay 13 on 2026-01-12", 13, True),
     ("Pay 13", "13", True), ("Mail 13 people in May", 13, True)],
)  # fmt: skip
def test_a_day_says_no_number(request_: str, number: object, is_said: bool) -> None:
    assert (unsaid((number,), request_) == []) is is_said  # type: ignore[arg-type]


def test_a_long_name_is_still_a_name() -> None:
    title = "Booking of one room for us at the Riverside View Hotel"
    assert unsaid((title,), REQUEST) == [title]
    assert unsaid((title,), REQUEST, "wording") == []


@pytest.mark.parametrize(
    ("word", "request_", "is_said"),
    [
        ("smith@corp.com", "mail john.smith@corp.com", False),
        ("1@corp.com", "mail john+1@corp.com", False),
        ("n@corp.com", "mail an-n@corp.com", False),
        ("smith@corp.com", "mail o'smith@corp.com", False),
        ("example.com", "mail ann@example.com", False),
        ("example.com", "open evil-example.com", False),
        ("john", "mail john+1@corp.com", False),
        ("smith@corp.com", "mail 'smith@corp.com'.", True),
        ("ann", "tell @ann", True),
        ("Pierre", "call Jean-Pierre", True),
        ("5", "move it by -5", True),
    ],
)
def test_the_tail_of_an_address_is_another_address(word: str, request_: str, is_said: bool) -> None:
    assert (unsaid((word,), request_) == []) is is_said


def test_a_length_of_time_was_said_where_the_argument_counts_time() -> None:
    assert unsaid((60,), "meet for an hour", seconds=60) == []
    assert unsaid((60,), "meet for an hour") == ["60"]
    assert unsaid((61,), "meet for an hour", seconds=60) == ["61"]
    assert unsaid((1,), "meet for an hour and a half", seconds=3600) == ["1"]
    assert unsaid((1.5,), "meet for an hour and a half", seconds=3600) == []
    assert unsaid(("PT1H30M", "PT2H"), "一个半小时的会") == ["PT2H"]
    assert duration_of("PT") is None


@pytest.mark.parametrize(
    "date",
    [
        "2024/05/20", "3pm", "3:00 PM", "May 20, 2024", "20 May", "2024年5月20日", "明天下午三点", "下周五", "后天",
        "晚上8点半", "3月5号",
    ],
)  # fmt: skip
def test_dates_are_nobodys_words_however_they_are_written_where_dates_are_expected(date: str) -> None:
    assert unsaid((date,), "Book it", dates=True) == []
    assert unsaid((date,), "Book it") == [date]
    assert unsaid((date,), "Book it", "wording") == [date]
    assert unsaid((date,), f"Remove {date}") == []


@pytest.mark.parametrize("word", ["5 Marys", "Mark 50", "may be", "Augusta 12", "192.168.1.20", "三点", "周五花店"])
def test_what_looks_like_a_date_at_first_sight_is_looked_up(word: str) -> None:
    assert (unsaid((word,), "Book it", dates=True) == []) is (word == "三点")


def test_a_name_like_a_month_takes_no_number_away() -> None:
    assert unsaid((50,), "Pay Mark 50") == []
    assert unsaid((50,), "Pay Ann 50 on March 5") == []
    assert unsaid((5,), "Pay Ann on March 5") == ["5"]


def test_a_blank_that_is_missing_after_an_address() -> None:
    request = "Post it on www.our-company.com.They wrote to bob@x.org.He knows"
    assert unsaid(("www.our-company.com", "bob@x.org"), request) == []
    assert unsaid(("www.our-company.com",), "Post it on www.our-company.com.they.net now") == ["www.our-company.com"]
    assert unsaid(("utils",), "delete utils.Helper now") == ["utils"]
