"""Texts out of docstrings, in the styles and languages that people write."""

import inspect

import pytest

from toolplan.tools.docstrings import Documentation, read_docstring

CASES = {
    "google": (
        """Find it.

        Longer text.

        Args:
            q: The query.
                More of it: with a colon.
            n (int, optional): Count. Defaults to 3.
            *rest: Others.
            **more: Options.

        Returns:
            The hits: sorted.

        Raises:
            ValueError: never said.
        """,
        "Find it.\n\nLonger text.",
        {
            "q": "The query.\nMore of it: with a colon.",
            "n": "Count. Defaults to 3.",
            "rest": "Others.",
            "more": "Options.",
        },
        "The hits: sorted.",
    ),
    "numpy": (
        """Find it.

        Parameters
        ----------
        q : str
            The query.
        n : int, optional
            Count: at most.

        Returns
        -------
        list of str
            The hits.
        """,
        "Find it.",
        {"q": "The query.", "n": "Count: at most."},
        "The hits.",
    ),
    "sphinx": (
        """Find it.

        :param q: The query,
            in words.
        :param int n: Count.
        :type q: str
        :returns: The hits.
        :rtype: list
        """,
        "Find it.",
        {"q": "The query,\nin words.", "n": "Count."},
        "The hits.",
    ),
    "one sphinx field": ("Find it.\n\n:param q: The query.", "Find it.", {"q": "The query."}, ""),
    "epytext": ("Find it.\n\n@param q: The query.\n@return: The hits.", "Find it.", {"q": "The query."}, "The hits."),
    "chinese, full-width": (
        """查找。

        可能查不到（返回空列表）。

        Args：
            q：关键词，例如“北京”。
                续行：也有冒号。
            n（int，可选）：数量。

        Returns：
            结果列表：按时间排序。
        """,
        "查找。\n\n可能查不到（返回空列表）。",
        {"q": "关键词，例如“北京”。\n续行：也有冒号。", "n": "数量。"},
        "结果列表：按时间排序。",
    ),
    "chinese headings": (
        "查找。\n\n参数:\n  q (str): 关键词\n  n (int): 数量\n返回值:\n  列表\n异常:\n  ValueError: 没有",
        "查找。",
        {"q": "关键词", "n": "数量"},
        "列表",
    ),
    "chinese without indentation": (
        "查找。\n\n参数：\nq：关键词\nn：数量\n返回：\n列表",
        "查找。",
        {"q": "关键词", "n": "数量"},
        "列表",
    ),
    "chinese result on one line": ("查找。\n\n返回：结果列表", "查找。", {}, "结果列表"),
    "chinese numpy": (
        "查找。\n\n参数\n----\nq : str\n    关键词\n\n返回\n----\nlist\n    列表",
        "查找。",
        {"q": "关键词"},
        "列表",
    ),
    "chinese sphinx": ("查找。\n\n:param q：关键词\n:return：列表", "查找。", {"q": "关键词"}, "列表"),
    "result on one line": (
        "Find it.\n\nArgs:\n  q: The query.\n\nReturns: the hits",
        "Find it.",
        {"q": "The query."},
        "the hits",
    ),
    "bullets": (
        "Find it.\n\nArgs:\n    - q: The query.\n    - `n`: Count.",
        "Find it.",
        {"q": "The query.", "n": "Count."},
        "",
    ),
    "types in brackets": (
        "Find.\n\nArgs:\n    q (Literal['a', 'b']): One (or two).\n    n (dict[str, (int)]): Two.",
        "Find.",
        {"q": "One (or two).", "n": "Two."},
        "",
    ),
    "a type before the result": ("Find.\n\nReturns:\n    dict: with keys a, b", "Find.", {}, "with keys a, b"),
    "prose before a colon": ("Find.\n\nReturns:\n    Weather: the weather", "Find.", {}, "Weather: the weather"),
    "only parameters": ("Args:\n    q: The query.", "", {"q": "The query."}, ""),
    "notes stay, examples go": (
        "Find it.\n\nNote:\n    Slow.\n\nExample:\n    >>> find('x')\n\nArgs:\n    q: The query.",
        "Find it.\n\nNote: Slow.",
        {"q": "The query."},
        "",
    ),
    "colons in prose": ("说明：这是工具。\n注意：慎用。", "说明：这是工具。\n注意：慎用。", {}, ""),
    "plain": ("Find it in: here.", "Find it in: here.", {}, ""),
    "nothing": ("", "", {}, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_docstring(name):
    text, description, parameters, returns = CASES[name]
    assert read_docstring(inspect.cleandoc(text), ["q", "n", "rest", "more"]) == Documentation(
        description, parameters, returns
    )


@pytest.mark.parametrize(
    "text", [":param", "Args:", "Args:\n\n\nReturns:", "---\n---", "Parameters\n---", ":::", "：：\n参数："]
)
def test_damaged_text_is_no_error(text):
    assert isinstance(read_docstring(text, ["q"]), Documentation)


def test_no_warnings_are_logged(caplog):
    read_docstring("Find.\n\nArgs:\n    other: Not a parameter.\n    broken line\n", ["q"])
    assert caplog.records == []
