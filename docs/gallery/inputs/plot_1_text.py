"""
Text highlighting
=================

The words of a text in the colours of their contributions: how the prediction comes about.

.. index:: text, highlighting, sentiment, NLP
"""

# %%
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes

reviews = ["good food", "friendly people", "slow service", "cold food", "good service", "rude people"]
model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(reviews, [1, 1, 0, 0, 1, 0])
explanation = limes.TextExplainer(model, output="margin")("Good food, slow service, friendly people")
explanation.plot.text()

# %%
# In a notebook, and on the page of ``to_html``:
explanation
