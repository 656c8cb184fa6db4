"""Rules about whole tables: a short list that covers what a model answers, with certificates."""

from limes._rules.cells import Condition
from limes._rules.cover import cover
from limes._rules.rule_list import CoveringRule, RuleList

__all__ = ["Condition", "CoveringRule", "RuleList", "cover"]
