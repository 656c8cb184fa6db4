"""Photographs at few calls: deletion and insertion of pixels beside ``lime`` and shap's Partition."""
