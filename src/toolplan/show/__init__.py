"""A plan, printed: as canonical JSON, as a diagram, in words.

Reading is lenient, printing is not: `canonical` writes each construct in exactly one way, and reading that gives the
same plan again.
"""

from toolplan.show.canonical import canonical, template_json, to_json
from toolplan.show.mermaid import mermaid
from toolplan.show.summary import summary

__all__ = ["canonical", "mermaid", "summary", "template_json", "to_json"]
