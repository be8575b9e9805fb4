"""A plan in words: the four questions, what is done, what is kept and when it goes."""

from penstock.pipelines.explain.explanation import Explanation, Running, Size, explain
from penstock.pipelines.explain.keeping import Kept
from penstock.pipelines.explain.logical import Node
from penstock.pipelines.explain.mermaid import mermaid
from penstock.pipelines.explain.questions import Question

__all__ = ["Explanation", "Kept", "Node", "Question", "Running", "Size", "explain", "mermaid"]
