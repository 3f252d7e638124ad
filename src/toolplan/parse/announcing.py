"""Words that leave no doubt: those that announce a plan, and those that close the reply behind it.

Nobody can list the ways to refuse. The ways to announce a plan are few, so these are what is recognised, sentence by
sentence: it has to begin in one of them (`Here is the plan`, `I'll look up`, `计划如下`), no word of doubt may follow,
and what does follow has to be in common words or in those of the matter itself: the plan, its tools, the request. All
else counts as doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from toolplan.patterns import late_pattern
from toolplan.tools import ToolSet

__all__ = ["Matter", "announces", "closes", "is_doubtful", "sentences"]

MAX_LENGTH = 1000
"""Nobody announces or closes a plan at such length."""
MAX_MATTER = 100_000
"""Of each text that a matter is known by, so many characters are looked at."""

_DOUBTS = late_pattern(
    r"n['’]t\b|\b(?:no|not|nor|non|never|none|nothing|nobody|nowhere|neither|without|cannot|hardly|barely|lest)\b"
    r"|\b(?:refus|declin|reject|ignor|avoid|abstain|abort|refrain|resist|prevent|object(?:ion|ed)|oppos|protest)\w*"
    r"|\b(?:would|could|should|might|may|must|ought|shall|supposed|allowed|want(?:s|ed)?|wish\w*|hop(?:e|es|ed|ing))\b"
    r"|\b(?:if|unless|until|till|once|only|merely|otherwise|assum\w+|suppos\w+|imagin\w+|pretend\w*|hypothe\w*)\b"
    r"|\b(?:theor|potential|possib|perhaps|maybe|probably|presumably|alleg|claim|quot|parod|jok|draft)\w*\b"
    r"|\b(?:but|however|although|though|yet|instead|rather|except|despite|nevertheless|against|away|aside|elsewhere)\b"
    r"|\b(?:examples?|instance|e\.g|i\.e|samples?|illustrat\w+|demonstrat\w+|templates?|mock\w*|dummy|fak\w+|fiction\w*)\b"
    r"|\b(?:propos|suggest|recommend|alternativ|counter|attempt|tempt|trick|dream|regret|apolog|unfortunate)\w*"
    r"|\b(?:says?|said|saying|wrote|told|tells|contain(?:s|ed)?|mention(?:s|ed)?|like (?:this|that|so)|sorry)\b"
    r"|\b(?:attack|malicious|inject|hack|phish|scam|fraud|suspicious|steal|stole|ransom|blackmail|sabotag|trap)\w*"
    r"|\b(?:they|he|she|who|whom|whose|whoever|why|how|than|people|someone|somebody|anyone|anybody|everyone|others)\b"
    r"|\b(?:danger|harm|unsafe|risk|wrong|terribl|awful|horr|insan|stupid|foolish|illegal|unethical|forbid|forbad)\w*"
    r"|\b(?:bad|mad|evil|crazy|ugly|worst|worse|mistake\w*|prohibit\w*|disallow\w*|wait\w*|later)\b"
    r"|\b(?:confirm(?!ation)|approv|permission|consent|await|pending|postpon|delay|withh[eo]ld)\w*"
    r"|\bun(?:executed|run|done|touched|sent|wise|willing|able)\b|\b(?:stop|quit|skip|leav|decid)\w*|[?？]"
    r"|[不没勿莫拒禁若倘暂绝]|非(?!常)|未(?!来)|无(?!锡)|否|(?<![分特类级区个性])别|忽略|略过|跳过|免谈|避免|以免|放弃|停止|作罢|算了"
    r"|如果|要是|除非|假[如设使]|例如|比如|[示样举范]例|例子|示范|可能|也许|或许|应该|应当|本该|的话|[吗呢么](?=$|[，。！：])"
    r"|但|然而|虽然|却|反而|而是|恶意|攻击|注入|骗|黑客|入侵|危险|有害|违|声称|自称|写着|写道|所说|里说|(?<!其)[他她]"
    r"|有人|别人|人家|谁|对方|等[你您]|确认|批准|同意|审核|考虑|建议|只是|只不过|只有|仅|难以|为难|怎|岂|何必|犯不|休想|错"
    r"|坏|蠢|荒唐|抱歉|对不起|遗憾|稍后|以后|再说|留给",
    re.IGNORECASE,
)
"""No, would, if, but, an example, somebody else's words, a judgement, a question."""


def _words(text: str) -> list[str]:
    return text.split()


_VERBS = _words(
    """
    add analyse analyze answer begin book build buy calculate call cancel change charge check clean clear
    collect combine compare complete compute continue convert copy correct count create delete determine do
    download edit email execute extract fetch fill filter find finish fix gather generate get handle identify
    insert inspect invite invoke issue list load look mail make message modify move open order pay perform plan
    post prepare proceed process produce publish put query read refund remove rename reserve retrieve run save
    schedule search send set share solve sort start store submit sum summarise summarize take transfer translate
    try turn update upload use verify work write
    """
)
"""What plans do. Who would rather not says it with other verbs, or with a word behind these that is not common."""
_THINGS = _words(
    """
    plan step call program code script json solution workflow sequence action procedure request task output
    response
    """
)
_COMMON = _words(
    """
    the an this that these those it its them your you my our me us of for to from in into onto on at by with as
    and or then first second third finally next also after before now all both each one two three four five six
    via up about order below above following follows needed necessary requested required asked need made
    prepared user job question information info details data result tool function api execution current single
    today tomorrow time care through full whole final complete detailed short simple small new updated corrected
    revised fixed resulting corresponding proper right exact same old quick structured python carry carried
    ahead based immediately directly together here is are am be will can let we going have ll ve re so therefore
    thus since because given using according comes drawn written built generated created like asking requests
    """
)
"""Words that say nothing about a matter."""

# ---- English sentences


def _doing(verb: str) -> str:
    if verb in ("begin", "get", "plan", "put", "run", "set", "submit", "sum"):
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") else verb) + "ing"


_VERB = rf"(?:carry\s+out|go\s+(?:ahead|through)|{'|'.join(_VERBS)})\b(?!\s+(?:you|me|us)\b)"
_DOING = rf"(?:cancelling|{'|'.join(map(_doing, _VERBS))})\b"
_DONE = rf"(?:first\s+|then\s+)?(?:queries|copies|tries|(?:{'|'.join(_VERBS)})(?:e?s)?)\b"
_THING = rf"(?:(?:all|the|an?|my|your|our|of)\s+){{0,3}}(?:[a-z-]+\s+){{0,2}}(?:{'|'.join(_THINGS)})s?\b"
_ON = (
    r"(?=\s*(?:$|[(,])|\s+(?:to|for|in|with|using|as|and|below|based|that|i|you|needed|required|requested|follows?)\b)"
)
_I = (
    r"(?:(?:i|we)(?:['’]ll|\s+will|\s+can|\s+(?:need|have|plan)\s+to|(?:['’]m|\s+am|['’]re|\s+are)\s+going\s+to)?"
    r"|let\s+me|let['’]s|let\s+us)"
)
_HOW = (
    r"(?:(?:now|first|next|then|also|simply|directly|quickly|immediately|go\s+ahead\s+and|(?:start|begin)\s+by|be)\s+)*"
)
_FIRST = r"(?:(?:now|first|next|then|so|therefore|thus|finally|to\s+begin|to\s+start)\b\s*,?\s*)*"
_LEAD = (
    r"(?:(?:in\s+order\s+to|to|for|since|as|because|based\s+on|given|with|after|using|according\s+to)"
    r"\s[^,，:：]{1,120},\s*)?"
)
_IS = r"(?:here(?:['’]s|\s+is|\s+are|\s+comes)|(?:below|this|these|that|the\s+following)\s+(?:is|are))"
_BEGINNINGS = (
    rf"{_IS}\s+{_THING}{_ON}(?:\s+that\s+(?:will\s+)?{_DONE}|\s+(?:i|you)\s+(?:made|prepared|need|asked|requested)\b)?",
    rf"(?:i|we)(?:\s+have|['’]ve)?\s+(?:prepared|made|created|written|drawn\s+up|put\s+together|built|generated)\s+{_THING}",
    rf"(?:the|this|my)\s+{_THING}\s+(?:will\s+)?{_DONE}",
    rf"{_I}\s+{_HOW}{_VERB}",
    rf"(?:(?:i|we)(?:['’]m|['’]re|\s+am|\s+are)\s+)?(?:now\s+)?{_DOING}",
    rf"{_THING}(?:\s+(?:is|are))?(?=\s*$|\s+(?:for|to|as\s+follows|below|following)\b)",
    r"(?:here(?:\s+(?:it\s+is|we\s+go|you\s+(?:go|are)))?|first|next|then|second|third|finally|as\s+follows|this)$",
)
_WISH = (
    r"(?:you|the\s+user)(?:['’]d\s+like|\s+would\s+like|['’]re\s+asking|\s+(?:is|are)\s+asking|\s+want(?:s|ed)?|\s+needs?|\s+ask(?:s|ed)"
    r"|\s+request(?:s|ed)?)(?:\s+(?:me|us|for))?\b"
)
_ITEM = rf"(?:[-*•]|\(?\d+[.)]|step\s+\d+:?)\s*{_FIRST}(?:{_VERB}|(?:tell|report|notify|inform|reply)\b)"

# ---- Chinese sentences

_VERBS_ZH = (
    "查询|查看|查找|查一下|查|搜索|检查|获取|读取|调用|执行|运行|使用|用|发送|发|创建|新建|添加|删除|删掉|删|更新|修改|预订|预约|订|取消"
    "|支付|转账|付款|安排|计算|统计|汇总|比较|对比|整理|清理|翻译|生成|制定|制订|规划|处理|完成|写入|保存|列出|打开|下载|上传|移动|复制"
    "|准备|开始|筛选|分析|提取|看一下|看看|找到|找出|找一下|按|操作|办理?|设置|设定|提交|退款|下单|做|告诉|告知|汇报"
)
_HOW_ZH = (
    "(?:现在|这就|马上|立即|立刻|首先|先|会|将会|将|要|来|去|需要|可以|就|准备|打算|开始|直接|依次|一次性|同时|分别|再|然后|接着"
    "|[为帮给][您你]|通过|一起|一并|分[一-鿿]步)*"
)
_THINGS_ZH = "(?:计划|步骤|方案|程序|调用|代码|流程|操作|工具|JSON|请求|安排)+"
_THING_ZH = rf"[^，,]{{0,16}}{_THINGS_ZH}"
_BEGINNINGS_ZH = (
    rf"(?:以下|下面|这里|这)(?:就)?(?:是|为)(?={_THING_ZH}(?:$|[，,（(]))",
    rf"(?:我的|[您你]的)?(?={_THING_ZH}(?:如下|是|为|见下)?(?:所示)?$)",
    rf"(?:接下来|下面|现在|首先|那么|然后|于是|因此|所以|[，,])*(?:我们?|让我们?|由我){_HOW_ZH}(?:{_VERBS_ZH})",
    rf"(?:正在|马上|现在|立即|立刻|开始|先|接下来|首先|然后|下面|这就|[为帮][您你]|[，,])*{_HOW_ZH}(?:{_VERBS_ZH})",
    r"(?:请看)?如下",
)
_LEAD_ZH = "(?:(?:为了|根据|按照|针对|关于|由于|因为|基于|既然)[^，,：:]{1,60}[，,])?"
_WISH_ZH = "(?:[您你]|用户)(?:想要?|需要|希望|请求|要求|让我|要我|要)"
_NUMBER_ZH = r"[\d一二三四五六七八九十]+"
_ITEM_ZH = rf"(?:[-*•]|[（(]?{_NUMBER_ZH}[.)）、]|第{_NUMBER_ZH}步[，,：:]?)\s*{_HOW_ZH}(?:{_VERBS_ZH})"
_COMMON_ZH = late_pattern(
    "以下|下面|如下|所示|这里|这个|那个|一个|两个|三个|几个|一份|一次|两次|一下|用户|需求|要求|请求|任务|问题|信息|数据|结果|具体|详细|完整|相应|对应"
    "|所需|最终|全部|所有|本次|行动|今天|明天|时间|接下来|因此|所以|于是|并且|以及|最后|一步|两步|首先|那么|为了|根据|按照|针对|关于"
    rf"|由于|因为|基于|既然|正在|请看|{_VERBS_ZH}|{_THINGS_ZH}|{_HOW_ZH[3:-2]}|该|此|这|并|和|与|或|把|对|从|到|在|让|由|我们?|您|你|它"
    "|的|了|得|为|是|给"
)
"""Words that say nothing about a matter."""

# ---- what may stand before and behind

_OPENERS = late_pattern(
    r"(?:(?:ok(?:ay)?|sure(?: thing)?|certainly|of course|alright|all right|great|perfect|got it|understood|absolutely"
    r"|yes|no problem|will do|thanks|thank you|hello|hi|hey|good|done|ready|now"
    r"|好的?|行|可以|没问题|明白了?|收到|当然可以|当然|了解了?|知道了|嗯|谢谢|您好|你好|是的|没错)(?=$|[\s,，.。!！:：;；—–-])"
    r"[\s,，.。!！:：;；—–-]*)+",
    re.IGNORECASE,
)
_GOODBYE = late_pattern(
    r"(?:i\s+)?hope\s+(?:this|that|it)\s+helps"
    r"|(?:please\s+)?(?:let\s+me\s+know|feel\s+free\s+to\s+ask|just\s+ask)(?:\s+if\s+(?:you\s+(?:need|have|want)|there\s+is))?"
    r"(?:\s+(?:anything|any|further|more|something|other|questions?|help|assistance|else)){1,4}"
    r"|if\s+you\s+(?:need|have)\s+(?:anything|any|further|more|other)(?:\s+(?:else|other|further|more|questions?|help))*,\s*"
    r"(?:please\s+)?(?:just\s+)?(?:let\s+me\s+know|ask|tell\s+me)"
    r"|(?:that|this)(?:['’]s|\s+is)\s+(?:all|it|everything|the\s+(?:whole\s+|complete\s+)?plan)"
    r"|(?:that|this|it)\s+(?:should|will)\s+(?:do|answer\s+(?:the|your)\s+(?:question|request))"
    r"|done|finished|thanks|thank\s+you|enjoy|end\s+of\s+plan"
    r"|i(?:['’]ll|\s+will)\s+(?:then\s+)?(?:let\s+you\s+know|tell\s+you|give\s+you|report|share|summari[sz]e)"
    r"(?:\s+the\s+(?:results?|answer|outcome))?(?:\s+(?:to|with)\s+you)?"
    r"(?:\s+(?:when|once|as\s+soon\s+as)\s+(?:it|they|this|the\s+plan)\s+(?:is|are|has)\s+(?:done|finished|complete|there|run))?"
    r"|希望(?:这|以上)?(?:能)?(?:对[您你])?(?:有所|有)?帮助(?:到[您你])?"
    r"|如果?(?:[您你])?(?:还)?(?:有|需要)(?:其他|任何|别的|更多|什么)(?:问题|需要|需求|帮助)?[，,]?请?(?:随时)?(?:告诉我|联系我|告知)?"
    r"|(?:计划|任务)?(?:执行|运行)?完成(?:之?后)?[，,]?我?(?:会|将)?(?:把结果)?(?:告诉|告知|汇报给|反馈给)[您你](?:结果)?"
    rf"|以上(?:就是|是|为)(?:全部|所有|完整)?的?{_THINGS_ZH}",
    re.IGNORECASE,
)
_SENTENCE = late_pattern(r"(?<=[.!?…:;])(?<!\d\.)[\"”’)*_]*\s+|(?<=[。！？：；])|\n+")
_MARKUP = late_pattern(r"\*\*|__|`")
_PARTICLES = late_pattern(r"(?<=\bcarry)\s+out\b|\bright\s+away\b", re.IGNORECASE)
_END = ".!。！:：;；… \t\r\n—–-*_"


def _any(*patterns: str) -> re.Pattern[str]:
    return late_pattern("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_BEGINNING = _any(
    *(_WISH, _WISH_ZH, _ITEM, _ITEM_ZH),
    *(f"{_FIRST}{_LEAD}{_FIRST}(?:{begun})" for begun in _BEGINNINGS),
    *(f"{_LEAD_ZH}(?:{begun})" for begun in _BEGINNINGS_ZH),
)
_WISHED = _any(_WISH, _WISH_ZH)
_DESCRIPTION = _any(
    rf"(?:(?:this|the|these)(?:\s+{_THING})?|it)\s+(?:will\s+(?:be\s+)?)?{_DONE}",
    rf"(?:该|这个?|此|上述|以上)(?:{_THINGS_ZH})?{_HOW_ZH}(?:{_VERBS_ZH})",
)
_WORD = late_pattern(r"[^\W\d_一-鿿]+")
_HAN = late_pattern(r"[一-鿿]+")
_ENDINGS = late_pattern(r"(?<=...)(?:ing|ed|es|s|e|y|ies)$")
_CAMEL = late_pattern(r"(?<=[a-z])(?=[A-Z])")
_SHORT = 2
"""Words of a matter that are not longer are those of its grammar."""
_TURNS = frozenset(("out", "off", "down", "over", "back", "aside", "own"))
"""Words that turn another one into its opposite: they are of no matter."""


def _stem(word: str) -> str:
    return _ENDINGS.sub("", word)


class Matter:
    """What a plan is about, by its words: those of its text, of the tools, of the request."""

    def __init__(self, *sources: str | ToolSet | Iterable[str]) -> None:
        self._sources = sources

    def also(self, *texts: str) -> Matter:
        """Return the matter together with more texts."""
        return Matter(*self._sources, *texts)

    @cached_property
    def _text(self) -> str:
        texts: list[str] = []
        for source in self._sources:
            if isinstance(source, ToolSet):
                texts += (
                    f"{tool.name} {tool.description} {' '.join(tool.parameters['properties'])}" for tool in source
                )
            else:
                texts += [source] if isinstance(source, str) else source
        return "\n".join(text[:MAX_MATTER] for text in texts)

    @cached_property
    def _stems(self) -> frozenset[str]:
        said = _WORD.findall(_CAMEL.sub(" ", self._text).lower())
        return frozenset(
            map(
                _stem,
                (*_COMMON, *_VERBS, *_THINGS, *(word for word in said if len(word) > _SHORT and word not in _TURNS)),
            )
        )

    def knows(self, text: str) -> bool:
        """Return whether all words of a text are common ones or belong to the matter."""
        if not all(len(word) == 1 or _stem(word) in self._stems for word in _WORD.findall(text.lower())):
            return False
        runs = _HAN.findall(_COMMON_ZH.sub(" ", text))
        return all(run[at : at + 2] in self._text for run in runs for at in range(max(1, len(run) - 1)))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order; a line is the end of one."""
    return [sentence for part in _SENTENCE.split(text) if (sentence := part.strip())]


def is_doubtful(text: str) -> bool:
    """Return whether there is a word in the text that speaks against what it is about, or leaves it open."""
    return _DOUBTS.search(_plain(text)) is not None


def announces(text: str, matter: Matter) -> bool:
    """Return whether all that the text says is that this plan comes next, or whether it says nothing."""
    return len(text) <= MAX_LENGTH and all(_is_about(_plain(said), _BEGINNING, matter) for said in sentences(text))


def closes(text: str, matter: Matter) -> bool:
    """Return whether all that the text behind a plan says is what the plan does or that this was all."""
    if len(text) > MAX_LENGTH:
        return False
    said = map(_plain, sentences(text))
    return all(_GOODBYE.fullmatch(sentence) or _is_about(sentence, _DESCRIPTION, matter) for sentence in said)


def _is_about(sentence: str, beginning: re.Pattern[str], matter: Matter) -> bool:
    """Return whether a sentence begins in this way, raises no doubt, and is about the matter."""
    if not sentence:
        return True
    begun = beginning.match(sentence)
    if begun is None:
        return False
    sentence = _PARTICLES.sub("", sentence)
    said = sentence[begun.end() :] if _WISHED.fullmatch(begun[0]) else sentence
    return not _DOUBTS.search(said) and matter.knows(said)


def _plain(sentence: str) -> str:
    """Return a sentence without markup, its full stop and words such as `OK,` before it."""
    text = _MARKUP.sub("", sentence).lstrip("#> \t\r\n").rstrip(_END)
    opener = _OPENERS.match(text)
    return text[opener.end() :] if opener else text
