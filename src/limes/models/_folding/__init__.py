"""Preprocessing folded into the form behind it: model columns as functions of the user's columns."""
