"""Explanations of a plan: the four questions, the logical and physical plan, and the state with its retention."""

from penstock.engine.explain.explanation import Explanation, PhysicalOperator, StateSize, explain
from penstock.engine.explain.logical_plan import LogicalNode
from penstock.engine.explain.mermaid import render_mermaid
from penstock.engine.explain.questions import Question
from penstock.engine.explain.state_retention import StateSummary

__all__ = [
    "Explanation",
    "LogicalNode",
    "PhysicalOperator",
    "Question",
    "StateSize",
    "StateSummary",
    "explain",
    "render_mermaid",
]
