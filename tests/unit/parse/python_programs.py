"""Programs whose meaning CPython can say, and the tools they call."""

from __future__ import annotations

from typing import Any

from toolplan.errors import ToolFailed
from toolplan.values import Json

ROWS: list[Json] = [
    {"id": 1, "name": "Ann", "city": "Oslo", "price": 30, "tags": ["a", "b"], "ok": True},
    {"id": 2, "name": "Bo", "city": "Rome", "price": 10, "tags": [], "ok": False},
    {"id": 3, "name": "Cy", "city": "Oslo", "price": 20, "tags": ["c"], "ok": True},
]


def _get(id: int) -> Json:
    found = next((row for row in ROWS if row["id"] == id), None)  # type: ignore[index, call-overload]
    if found is None:
        raise ToolFailed(f"no row {id}")
    return found


TOOLS: dict[str, Any] = {
    "rows": lambda: ROWS,
    "get": _get,
    "find": lambda city: [row for row in ROWS if row["city"] == city],  # type: ignore[index, call-overload]
    "double": lambda x: x * 2,
    "is_even": lambda x: x % 2 == 0,
    "send": lambda to, text="": {"sent": to, "text": text},
    "page": lambda n: {"found": [n, n + 1], "next": n + 1 if n < 4 else None},
    "pair": lambda: [7, 8],
    "nothing": lambda: None,
    "fail": lambda: (_ for _ in ()).throw(ToolFailed("out of order")),
    "ask_user": lambda question: "yes",
}

PROGRAMS: dict[str, str] = {
    "one call": 'w = get(id=1)\nreturn w.name',
    "no call": 'return "hello"',
    "nested call": "return send(to=get(id=1).name, text=find(city=get(id=2).city)[0].name)",
    "call in an f-string": 'return f"{get(id=1).name} and {get(id=2)[\'name\']!r} {double(x=2):03d}"',
    "call in a subscript": "xs = [4, 5, 6]\nreturn xs[double(x=1)]",
    "arguments in order": "return send(text=get(id=1).name, to=get(id=2).name)",
    "and, not taken": 'a = False\nb = a and send(to=1)\nreturn "no" if b is False else "yes"',
    "and, taken": "a = 1\nb = a and double(x=4)\nreturn b",
    "or, not taken": 'a = "x"\nreturn a or send(to=1)',
    "or, taken": "return nothing() or double(x=1) or send(to=9)",
    "and and or": "a = 0\nreturn (a or is_even(x=2)) and (is_even(x=3) or double(x=5))",
    "and in a condition": "if is_even(x=2) and is_even(x=3):\n    send(to=1)\nelse:\n    send(to=2)",
    "conditional": "a = 3\nx = send(to=1) if a > 5 else send(to=2)\nreturn x.sent",
    "conditional within": "a = 3\nreturn 1 + (double(x=1) if a > 2 else double(x=2)) + double(x=3)",
    "conditional returned": "return send(to=1) if is_even(x=1) else send(to=2)",
    "chained comparison, cut short": "return 5 < double(x=2) < double(x=3)",
    "chained comparison": "return 1 < double(x=2) < double(x=3) <= 6",
    "chain with plain ends": "return 1 < 2 < double(x=3)",
    "statement with and": "a = 1\na and send(to=1)\na or send(to=2)\nsend(to=3) if a else send(to=4)",
    "if elif else": 'for n in [1, 2, 3, 4]:\n    if n == 1:\n        send(to="one")\n    elif is_even(x=n):\n'
    '        send(to="even")\n    elif n == 3:\n        pass\n    else:\n        send(to="other")',
    "loop": 'for r in rows():\n    send(to=r.name, text=f"{r.price}")',
    "loop over text": 'for c in "abc":\n    send(to=c)',
    "loop over range": "t = 0\nfor i in range(1, 6, 2):\n    t += double(x=i)\nreturn t",
    "loop with enumerate": "for i, r in enumerate(rows(), 1):\n    send(to=i, text=r.name)",
    "loop over items": 'd = {"a": 1, "b": 2}\nfor k, v in d.items():\n    send(to=k, text=double(x=v))',
    "loop over zip": "for a, (b, c) in zip([1, 2], [[3, 4], [5, 6]]):\n    send(to=a + b * c)",
    "accumulating": "xs = []\nfor r in rows():\n    xs.append(double(x=r.price))\nreturn xs",
    "variable lives on": "last = None\nfor r in rows():\n    if r.ok:\n        last = r.name\nreturn last",
    "loop variable lives on": "r = None\nfor r in rows():\n    send(to=r.id)\nreturn r.name",
    "tuple loop variables live on": "i, r = 0, None\nfor i, r in enumerate(rows()):\n    pass\nreturn [i, r.name]",
    "nested loops, same variable": "out = []\nfor x in [1, 2]:\n    for x in [10, 20]:\n        out.append(x)\n"
    "    out.append(x)\nreturn out",
    "break": "for r in rows():\n    if not r.ok:\n        break\n    send(to=r.id)\nreturn 1",
    "continue": "for r in rows():\n    if not r.ok:\n        continue\n    send(to=r.id)\nreturn 1",
    "break of the inner loop": "for a in [1, 2]:\n    for b in [1, 2, 3]:\n        if b > a:\n            break\n"
    "        send(to=a * 10 + b)",
    "return in a loop": 'for r in rows():\n    if r.name == "Bo":\n        return r.city\nreturn "none"',
    "while with a counter": "i = 0\nwhile i < 3:\n    send(to=i)\n    i += 1\nreturn i",
    "while down": "i = 6\nwhile i > 0:\n    send(to=i)\n    i = i - 2\nreturn i",
    "while with a call": "n = 0\nwhile is_even(x=n) and n < 9:  # max_iterations: 9\n    n += double(x=1)\n    if n == 4:\n"
    "        continue\n    if n == 8:\n        n += 1\nreturn n",
    "while over pages": "n, found = 1, []\nwhile n is not None:  # at most 10 pages\n    p = page(n=n)\n    found.extend(p.found)\n"
    "    n = p.next\nreturn found",
    "while true": "n = 0\nwhile True:\n    n += 1\n    send(to=n)\n    if n >= 3:\n        break\nreturn n",
    "while over a queue": "q = [1, 2]\nseen = []\nwhile q:\n    x = q.pop(0)\n    seen.append(x)\n    if x < 4:\n"
    "        q.append(double(x=x))\nreturn seen",
    "while with len": "xs = []\nwhile len(xs) < 3:\n    xs.append(double(x=len(xs)))\nreturn xs",
    "stated bound": "n = 1\nwhile n != 64:\n    max_iterations(10)\n    n = double(x=n)\nreturn n",
    "list comprehension": "return [double(x=r.price) for r in rows()]",
    "comprehension of fields": "return [get(id=i).name for i in [3, 1]]",
    "comprehension with a condition": 'return [double(x=r.price) for r in rows() if r.ok if r.city == "Oslo"]',
    "comprehension with a call in its condition": "return [r.name for r in rows() if is_even(x=r.id)]",
    "calls in condition and element": "return [double(x=n) for n in range(6) if n and is_even(x=n) if n < 4]",
    "two conditions with calls": "return [n for n in range(8) if is_even(x=n) if is_even(x=n // 2)]",
    "comprehension with two lists": "return [double(x=a + b) for a in [1, 2] for b in [10, 20] if a + b != 12]",
    "second list by a call": "return [r.name for c in ['Oslo', 'Rome'] for r in find(city=c) if r.ok]",
    "three lists": "return [double(x=b) for a in [1, 2] for p in [page(n=a)] for b in p.found]",
    "comprehension over pairs": "return [double(x=i) + v for i, v in enumerate([5, 6]) if v]",
    "comprehension hides a variable": "i, v = 100, 200\nxs = [double(x=i) + v for i, v in enumerate([5, 6])]\n"
    "return [xs, i, v]",
    "renaming stops at inner names": "i = 5\nxs = [[double(x=i), [i for i in [7]], sum(i for i in [v])]"
    " for i, v in enumerate([1])]\nreturn [xs, i]",
    "dict comprehension": "return {r.name: double(x=r.id) for r in rows() if r.ok}",
    "set comprehension": "return sorted({double(x=r.id % 2) for r in rows()})",
    "sum of a generator": "return sum(double(x=n) for n in [1, 2, 3])",
    "join of a generator": 'return ", ".join(get(id=n).name for n in [1, 2])',
    "max of a generator": "return max(double(x=n) for n in [1, 3, 2])",
    "any stops": "return any(is_even(x=n) for n in [1, 2, 3])",
    "any of a list does not": "return any([is_even(x=n) for n in [1, 2, 3]])",
    "all stops": "return all(is_even(x=n) for n in [2, 3, 4])",
    "all holds": "return all(is_even(x=n) for n in [2, 4])",
    "any over two lists": "return any(is_even(x=a + b) for a in [2, 3] for b in [1, 3, 4] if a != 9)",
    "all with a call in the condition": "return all(double(x=a) < 9 for a in [2, 3, 4, 6] if is_even(x=a))",
    "next": "return next(double(x=n) for n in [1, 2, 3] if is_even(x=n))",
    "next with a default": 'return next((n for n in [1, 3] if is_even(x=n)), "none")',
    "comprehension for its effect": "[send(to=r.id) for r in rows() if r.ok]\nreturn 1",
    "comprehension over a comprehension": "return [double(x=m) for m in [double(x=n) for n in [1, 2]] if m > 2]",
    "nested comprehension": "return [[double(x=a * b) for b in [1, 2]] for a in [1, 3]]",
    "several targets": "a, b = 1, 2\na, b = b, a\nreturn [a, b]",
    "several calls": "a, b = double(x=1), double(x=2)\nreturn [a, b]",
    "several calls that use the targets": "a, b = 1, 5\na, b = double(x=b), double(x=a)\nreturn [a, b]",
    "a pair": "a, b = pair()\nreturn a - b",
    "starred target": "a, *rest = [1, 2, 3]\n*more, z = rest\nfirst, *mid, last = [1, 2, 3, 4]\n"
    "return [a, rest, more, z, first, mid, last]",
    "nested targets": "(a, b), c = [[1, 2], 3]\nreturn a + b * c",
    "same value twice": "a = b = double(x=4)\nreturn a + b",
    "several targets from one value": "a = b, c = [1, 2]\nreturn [a, b, c]",
    "annotated": "a: int = double(x=2)\nb: list[int]\nreturn a",
    "augmented": "a = 10\na += 2\na -= 1\na *= 3\na //= 2\na %= 7\na **= 2\nreturn a",
    "augmented with a call": "a = 1\na += double(x=a)\nreturn a",
    "swap elements": "xs = [1, 2, 3]\nxs[0], xs[2] = xs[2], xs[0]\nreturn xs",
    "item assignment": 'd = {}\nfor r in rows():\n    d[r.city] = d.get(r.city, 0) + r.price\nd["x"] = {"y": 1}\n'
    'd["x"]["z"] = [1, 2]\nd["x"]["z"][0] += 5\nreturn d',
    "field assignment": "r = get(id=1)\nr.price = double(x=r.price)\nr.tags[0] = 9\nreturn r",
    "counting": 'counts = {}\nfor r in rows():\n    if r.city not in counts:\n        counts[r.city] = 0\n'
    "    counts[r.city] += 1\nreturn counts",
    "grouping": "groups = {}\nfor r in rows():\n    groups.setdefault(r.city, []).append(r.name)\nreturn groups",
    "setdefault as a value": 'd = {"a": 1}\nx = d.setdefault("a", 5)\ny = d.setdefault("b", 6)\nreturn [x, y, d]',
    "setdefault as a statement": 'd = {"a": 1}\nd.setdefault("a", 5)\nd.setdefault("b", 6)\nreturn d',
    "grouping with item": 'd = {"a": []}\nd["a"].append(1)\nd["a"].append(double(x=1))\nreturn d',
    "list methods": "xs = [3, 1]\nxs.extend([5, 4])\nxs.insert(1, 9)\nxs.remove(5)\nxs.sort()\nxs.reverse()\n"
    "xs.insert(-1, 7)\nxs.append([1])\nreturn xs",
    "extend by a text": 'xs = []\nxs.extend("ab")\nreturn xs',
    "sort by key": "xs = rows()\nxs.sort(key=lambda r: r.price, reverse=True)\nreturn [r.name for r in xs]",
    "pop": "xs = [1, 2, 3, 4, 5, 6]\na = xs.pop()\nb = xs.pop(0)\nc = xs.pop(-2)\ni = 1\nd = xs.pop(i)\nxs.pop()\n"
    "return [a, b, c, d, xs]",
    "pop of a field": 'd = {"a": 1, "b": 2, "c": 3}\nx = d.pop("a")\ny = d.pop("z", None)\nk = "b"\nz = d.pop(k)\n'
    "return [x, y, z, d]",
    "del": 'd = {"a": 1, "b": 2, "c": 3}\nxs = [1, 2, 3, 4]\nk, i = "b", 1\ndel d["a"], xs[0], xs[-1]\ndel d[k]\n'
    "del xs[i]\nreturn [d, xs]",
    "update": 'd = {"a": 1}\nd.update({"b": 2})\nd.update(c=3)\nd |= {"e": 4}\nreturn d',
    "set methods": "s = set()\nfor r in rows():\n    s.add(r.city)\ns.discard('Rome')\ns.add('Kyiv')\ns.add('Oslo')\n"
    "return sorted(s)",
    "clear": "xs = [1]\nd = {'a': 1}\nxs.clear()\nd.clear()\nxs.append(double(x=2))\nreturn [xs, d]",
    "append of a call of a pop": "xs = [1, 2]\nys = []\nys.append(double(x=xs.pop()))\nreturn [xs, ys]",
    "try that succeeds": "try:\n    x = get(id=1).name\nexcept ToolError as e:\n    x = str(e)\nreturn x",
    "try that fails": 'try:\n    x = get(id=9).name\n    send(to=x)\nexcept ToolError as e:\n    x = f"no: {e}"\nreturn x',
    "try in a loop": "out = []\nfor i in [1, 9, 3]:\n    try:\n        out.append(get(id=i).name)\n"
    "    except ToolError:\n        continue\nreturn out",
    "try with a return": 'try:\n    return get(id=1).name\nexcept Exception as e:\n    return "none"',
    "try with else": "try:\n    x = get(id=1)\nexcept ToolError:\n    x = None\nelse:\n    send(to=x.name)\nreturn x is None",
    "try with else, not reached": "try:\n    x = get(id=8)\nexcept ToolError:\n    x = None\nelse:\n    send(to=1)\n"
    "return x is None",
    "try whose handler returns, with else": 'try:\n    x = get(id=8)\nexcept ToolError:\n    return "gone"\nelse:\n'
    "    send(to=1)",
    "try with finally": "try:\n    x = get(id=8).name\nexcept ToolError:\n    x = None\nfinally:\n    send(to=2)\nreturn x is None",
    "nested try": "try:\n    try:\n        fail()\n    except ToolError as e:\n        send(to=str(e))\n        fail()\n"
    "except ToolError as f:\n    return f\"again {f}\"",
    "a failure that nothing catches": "send(to=1)\nfail()\nsend(to=2)",
    "ask the user": 'reply = ask_user("sure?")\nif reply == "yes":\n    send(to=1)\nreturn reply',
    "ask the user and return": 'return ask_user(f"which of {len(rows())}?")',
    "answer": 'if is_even(x=2):\n    answer("even")\nsend(to=1)',
    "cannot": 'rs = rows()\nif len(rs) > 2:\n    cannot(f"too many: {len(rs)}", missing=["a filter"])\nsend(to=1)',
    "print": 'print("a", double(x=1), f"{3}")\nprint()\nreturn 2',
    "literal structures": 'x = {"a": [1, double(x=2), {"b": f"{double(x=3)}!"}], "c": (1, 2)}\nreturn x',
    "keywords from a dictionary": 'return send(**{"to": 1, "text": "x"})',
    "string pieces": 'a = 3\nreturn "x" f"{a}" "y{z}" f"{{{a}}}"',
    "unusual f-strings": "d = {'k': 'v'}\nxs = ['p', 'q']\nw = 6\nreturn f'{d[\"k\"]}|{w:>{w}}|{\", \".join(xs)!r}|{w=}|{3.14159:.2f}'",
    "slices": "xs = [1, 2, 3, 4, 5]\nreturn [xs[1:3], xs[:-1], xs[::2], xs[double(x=1):]]",
    "calls in a dictionary, in order": 'return {send(to="a").sent: double(x=1), send(to="b").sent: double(x=2)}',
    "deep": "return double(x=double(x=double(x=double(x=1))))",
    "keys that are not text": "return [n for n in range(3) if n not in [double(x=1)]]",
    "docstring and pass": '"""What it does."""\npass\n...\nx = double(x=1)\nreturn x',
    "variables named like functions": 'date = "d"\nlist_ = [1]\nanswer_ = 1\nlines = ["a"]\nlines.append(date)\n'
    "add = lines\nreturn add",
    "comparison with is": "x = nothing()\nif x is None and x is not True:\n    send(to=0)\nreturn x is None",
    "lambda with a result": "rs = rows()\nreturn sorted(rs, key=lambda r: (r.city, -r.price))[0].name",
    "early return among calls": "for r in rows():\n    x = get(id=r.id)\n    if x.price < 20:\n        return x.name\n    send(to=x.name)",
    "walk two lists": "out = []\ni = 0\nxs = [1, 2, 3]\nwhile i < len(xs):\n    out.append(double(x=xs[i]))\n    i += 1\nreturn out",
    "none arguments": "return send(to=None, text=None if is_even(x=1) else 'odd')",
}
