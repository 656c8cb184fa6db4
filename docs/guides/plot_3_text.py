"""
A text classifier
=================

A review was read as a complaint. Which words made it so? The corpus is a few dozen short reviews, written for this page; a real
one changes nothing but the first cell.

.. index:: text classifier, sentiment, NLP
"""

# %%
# A corpus and a classifier
# -------------------------
from itertools import pairwise

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

good = ["good", "warm", "friendly", "fresh", "quick", "delicious"]
bad = ["cold", "slow", "rude", "stale", "expensive", "bland"]
things = ["soup", "bread", "service", "fish", "coffee", "terrace"]
reviews = [
    f"the {thing} was {word} and the {other} not" for word in good for thing, other in pairwise(things)
]
reviews += [
    f"the {thing} was {word} and the {other} not" for word in bad for thing, other in pairwise(things)
]
reviews += [
    "good soup and friendly service",
    "cold coffee and rude service",
    "slow service, delicious fish",
    "stale bread",
]
liked = ["yes"] * 30 + ["no"] * 30 + ["yes", "no", "yes", "no"]

model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)).fit(reviews, liked)
text = "The soup was cold and the service slow, but the bread was delicious"
dict(zip(model.classes_.tolist(), model.predict_proba([text])[0].round(2).tolist(), strict=True))

# %%
# The account
# -----------
#
# The contributions of the words start at the model's answer to the empty text and add up to its answer to this one. The margin of a linear model on TF-IDF is
# read, and they are exact although TF-IDF divides by the norm of the words that remain.
import limes

explainer = limes.TextExplainer(model, output="margin")
explanation = explainer(text)
explanation

# %%
print(explanation.method, "after", explanation.model_calls, "calls of the model")
explanation.plot.text()

# %%
# The sum, and each word alone and last
# -------------------------------------
#
# With ``ends=True`` the thin line of a word reaches from what it adds alone to what it adds to all other words.
account = explanation.contributions
print(account.base_values, account.base_values + account.values.sum(axis=1), explanation.predictions)
explanation.plot.waterfall(ends=True)

# %%
# LIME's question
# ---------------
#
# A coefficient compares texts with and without a word, while the others are removed at random: :doc:`/two-questions`.
print(explanation.coefficients)

# %%
# Words together
# --------------
#
# Pairs show what single words miss:
for pair in explanation.interactions(top=3):
    print(pair)

# %%
# Probabilities, and other models
# -------------------------------
#
# Any function from a list of texts to numbers can be explained. With few words the explanation is exact for every model, which
# is called on all subsets of the words. Longer texts are sampled, with standard errors.
probability = limes.TextExplainer(lambda texts: model.predict_proba(texts)[:, 1])(
    "slow service, delicious fish"
)
print(probability)

# %%
# Classification pipelines of ``transformers`` are models as they are, and so are pairs ``(network, tokenizer)``
# (:doc:`/transformers`):
#
# .. code-block:: text
#
#     classifier = transformers.pipeline("text-classification", top_k=None)
#     limes.TextExplainer(classifier, mask=True)(text)
#
# ``bag=False`` explains each occurrence of a word by itself, ``split=`` cuts the text in another way, and ``mask=`` puts a token in place of a removed
# word. :doc:`/exact` lists the models whose explanations are exact.
