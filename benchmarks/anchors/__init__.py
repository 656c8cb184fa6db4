"""Anchors of limes and of anchor-exp under the same law, judged by other draws of it."""
