"""Names of a table's columns, as lime's explanations of tables give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limes.compat.lime.domain_mapper import DomainMapper, Pairs

__all__ = ["TableDomainMapper"]


class TableDomainMapper(DomainMapper):
    """Names of columns, and what holds of each at the row.

    Parameters
    ----------
    feature_names : d names
    feature_values : texts
        The row's values; of a sparse row those of ``feature_indexes``.
    scaled_row : (d,)
    categorical_features : positions
    discretized_feature_names : d texts
        What holds at the row, such as ``age <= 30.00``.
    """

    page_options = frozenset({"show_table", "show_all"})

    def __init__(
        self,
        feature_names: Sequence[str],
        feature_values: Sequence[str],
        scaled_row: Any,
        categorical_features: Sequence[int],
        discretized_feature_names: Sequence[str] | None = None,
        feature_indexes: Any = None,
    ) -> None:
        self.exp_feature_names = feature_names
        self.feature_names = feature_names
        self.feature_values = feature_values
        self.scaled_row = scaled_row
        self.categorical_features = categorical_features
        self.all_categorical = len(categorical_features) == len(feature_names)
        self.discretized_feature_names = discretized_feature_names
        self.feature_indexes = feature_indexes

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace positions by what holds at the row."""
        names = self.discretized_feature_names or self.exp_feature_names
        return [(names[j], value) for j, value in exp]
