"""Vectors of texts from a small model that comes with a package, so that nothing is fetched when it is used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from toolplan.errors import UsageError

__all__ = ["packaged_embeddings"]


def packaged_embeddings() -> Callable[[Sequence[str]], Any]:
    """Return a function from texts to vectors, for `Router(embed=...)`: the WordLlama model of the extra `route`.

    It averages vectors of word pieces (16 MB, English above all) and takes a fraction of a millisecond for a text. It
    is loaded here, from the package alone. Raises `UsageError` when the package is not installed.
    """
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise UsageError("`wordllama` is not installed, which holds the vectors; run `pip install 'toolplan[route]'`")
    wordllama: Any = importlib.import_module("wordllama")

    # The folder of the package serves as its cache: the tokenizer is there, but not where it looks first.
    model = wordllama.WordLlama.load(cache_dir=str(Path(found.origin).parent), disable_download=True)

    def embed(texts: Sequence[str]) -> Any:
        return model.embed(list(texts))

    return embed
