"""Gemini through the library, with tools declared in the subset of OpenAPI that every version of its API takes.

The library declares them as `parametersJsonSchema`, which is newer, drops what it does not know, and is not served
everywhere. Imported with the first request to Gemini: it needs `pydantic-ai-slim[google]`.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.models.google import GoogleModel

__all__ = ["GeminiModel"]


class GeminiModel(GoogleModel):
    """A model of Google's Gemini API. The schemas of its tools are given in the subset (`openapi_schema`)."""

    def _get_tool_config(self, *given: Any, **named: Any) -> Any:
        tools, config, image = super()._get_tool_config(*given, **named)
        for tool in cast("list[dict[str, Any]]", tools or ()):
            for declared in tool.get("function_declarations") or ():
                schema = declared.pop("parameters_json_schema", None)
                # A function without parameters has no schema at all: an object without properties is refused.
                if schema and schema.get("properties"):
                    declared["parameters"] = schema
        return tools, config, image
