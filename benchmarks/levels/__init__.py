"""Accounts at two levels: deletion and insertion at few calls beside ``lime`` and shap, and coverage."""
