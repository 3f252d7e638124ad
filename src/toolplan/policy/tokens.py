"""Whether a text stands in another as a whole: not as a part of a longer name, path, address or number.

Where a name ends depends on what it is: `Pierre` stands in "Jean-Pierre", but no directory of `/home/me/x.txt` in it,
nor `v1` in `v1.2`. A text without letters and digits (`/`, `*`) has to stand there by itself. Chinese sets no blanks
between words, so what may stand beside a word is listed (`_LEFT`, `_RIGHT`): `王小明` stands in "给王小明发邮件", but
`张三` not in "张三丰". Where that cannot be told, it does not stand there.
"""

from __future__ import annotations

import re
import unicodedata

from toolplan.patterns import late_pattern

__all__ = ["HAN", "ODD", "is_bare", "plain", "spaced", "stands_in", "unquoted"]

_BLANKS = late_pattern(r"\s+")
HAN = late_pattern(r"[\u3400-\u9fff\uf900-\ufaff]")
_HAN_CLASS = r"\u3400-\u9fff\uf900-\ufaff"
_SEAM = late_pattern(rf"(?<=[{_HAN_CLASS}])(?=[^\s{_HAN_CLASS}])|(?<=[^\s{_HAN_CLASS}])(?=[{_HAN_CLASS}])")
ODD = late_pattern(r"\d|[@/\\_]|\w\.\w")
"""What is more than a word of a language: numbers, addresses, ids, paths."""

_BEFORE_NAME = r"(?<![\w.~*$%\\/&?])(?<!\w[+@])"
_BEFORE_ODD = r"(?<![\w.~*$%\\/&?])(?<!\w[+@-])"
_BEFORE_ADDRESS = r"(?<!\w)(?<!\w[.+@!#$%&'*/=?^`{|}~-])"
"""What must not stand before a text for it to be there as a whole: the tail of an address is another address
(RFC 5322, section 3.2.3, says what may be in one), and that of a path another path."""
_BEFORE_HOST = r"(?:(?<=http://)|(?<=https://)|(?<![\w.~*$%\\/&?@+-]))"
_HOST = late_pattern(r"(?:[\w-]+\.)+[a-z]{2,}(?:[:/?#]\S*)?")
_BEFORE_ROOTED = r"(?<![\w.~*$%\\/&?@-])(?<!\b[a-z]:)(?!(?<=:)//)"
_AFTER = r"(?![\w@*~\\]|[.+-]\w|[:?#%&=$][\w/\\]|/(?![\s)\]}>'\"`.,;:!?]|$)|/[.,;:!?]*[\w*~/\\.])"
_ALONE_BEFORE = rf"(?:^|(?<=[\s'\"`(\[{{<{_HAN_CLASS}，。！？：；、“”‘’《》「」]))"
_ALONE_AFTER = rf"(?=[.,;:!?]*(?:[\s'\"`)\]}}>{_HAN_CLASS}，。！？：；、“”‘’《》「」]|$))"

_BEFORE_HAN = r"(?<![.~*$%\\/&@_])"
_AFTER_HAN = r"(?![@*~\\_]|[.+-]\w|[#%&=$]\w|/(?![\s)\]}>'\"`.,;:!?]|$)|/[.,;:!?]*[\w*~/\\.])"
_AFTER_MIXED = r"(?![A-Za-z0-9_@*~\\]|[.+-]\w|[:?#%&=$][\w/\\]|/(?![\s)\]}>'\"`.,;:!?]|$)|/[.,;:!?]*[\w*~/\\.])"
_LATIN = late_pattern(r"[A-Za-z0-9_]")

_LEFT = (
    "给|把|将|跟|及|或|和|与|对|向|请|让|叫|找|问|约|在|到|从|去|往|由|被|是|的|了|按|至|付|汇|寄|订|买|租|删|查|读|写"
    "|存|取|以|替|帮|为|用|发|转|送|加|改|回"
    "|通知|告诉|联系|邀请|发送|删除|取消|创建|新建|打开|关闭|下载|上传|分享|转发|回复|添加|移除|更新|修改|购买|安排|提醒"
    "|参加|加入|搜索|查询|查找|播放|导航|前往|选择|使用|名叫|名为|叫做|预订|预约|包括|以及|关于|收件人|客户|用户|同事"
    "|朋友|老师|经理|同学|项目|文件|文件夹|城市|酒店|餐厅|公司|部门|群|频道|主题|标题|先生|女士|医生"
)
_LEFT_WORDS = frozenset(_LEFT.split("|"))
_LONGEST = 3
_NUMERALS = "一二两三四五六七八九十百千万亿半"
_RIGHT = (
    "的|和|与|跟|及|或|在|到|从|去|是|了|吗|呢|吧|把|给|将|发|打|转|付|汇|送|说|写|回|约|订|买|先生|女士|小姐|老师|经理|同学"
    "|主任|总监|教授|医生|博士|明天|今天|后天|昨天|下周|上周|本周|周[一二三四五六日末]|星期|上午|下午|早上|晚上|中午"
    rf"|[{_NUMERALS}]{{1,8}}[{_NUMERALS}元块个张份次点钱封条人位美欧]|这|那|并|然后|请|里|中的|内的|等|以|都|也|要|想|能|可以|不|没|有"
    "|为|被|让|来|开会|参加|加入|提醒|见面|吃饭|天气|机票|车票|航班|邮件|电话|短信|消息|账户|账号|订单|日程|一下|一封|一条"
)
_AFTER_NAME = late_pattern(_RIGHT)


def plain(text: str) -> str:
    """Return a text as it is compared: one width and case, one kind of quotes, single blanks."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _BLANKS.sub(" ", folded.replace("’", "'").replace("“", '"').replace("”", '"')).strip()


def unquoted(text: str) -> str:
    """Return a text without the quotes around it and the punctuation of a sentence after it.

    What has no letter or digit stays as it is: there the signs are all there is.
    """
    if is_bare(text):
        return text
    return text.strip(" ").lstrip("'\"`([{<,;:!?。，；：！？").rstrip(" '\"`)]}>.,;:!?。，；：！？")


def is_bare(text: str) -> bool:
    """Return whether a text has no letter and no digit in it."""
    return not any(char.isalnum() for char in text)


def spaced(text: str) -> str:
    """Return a plain text with a blank wherever Chinese meets something else: what is not Chinese ends there."""
    return _SEAM.sub(" ", text)


def stands_in(text: str, request: str) -> bool:
    """Return whether a plain text stands as a whole in a plain request (`spaced` for a text that is not Chinese)."""
    if text not in request and not HAN.search(text):
        return False
    if is_bare(text):
        return re.search(_ALONE_BEFORE + re.escape(text) + _ALONE_AFTER, request) is not None
    if HAN.search(text):
        return _stands_in_chinese(text, request)
    if "@" in text and "/" not in text:
        before = _BEFORE_ADDRESS
    elif text[0] in "/\\":
        before = _BEFORE_ROOTED
    elif _HOST.fullmatch(text):
        before = _BEFORE_HOST
    else:
        before = _BEFORE_ODD if ODD.search(text) else _BEFORE_NAME
    return re.search(before + re.escape(text) + _AFTER, request) is not None


def _stands_in_chinese(text: str, request: str) -> bool:
    letters = text.replace(" ", "")
    begins_han, ends_han = HAN.match(letters[0]), HAN.match(letters[-1])
    pattern = _BEFORE_HAN + r"\s*".join(map(re.escape, letters)) + (_AFTER_HAN if ends_han else _AFTER_MIXED)
    for match in re.finditer(pattern, request):
        before, after = (
            request[max(0, match.start() - _LONGEST) : match.start()],
            request[match.end() : match.end() + 1],
        )
        left = HAN.match(before[-1:]) if begins_han or letters[0] in "/\\" else _LATIN.match(before[-1:])
        right = HAN.match(after) if ends_han else None
        if len(letters) == 1 and (left or right):
            continue
        if left and not any(before[-length:] in _LEFT_WORDS for length in range(1, _LONGEST + 1)):
            continue
        if right and not _AFTER_NAME.match(request, match.end()):
            continue
        return True
    return False
