"""The calls of lime's tutorial on texts, two classes: why a post looks like atheism.

Only the import is another, and the posts are composed here, as nothing is downloaded.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from posts import fetch
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from limes.compat.lime.lime_text import LimeTextExplainer

categories = ["alt.atheism", "soc.religion.christian"]
newsgroups_train = fetch(subset="train", categories=categories)
newsgroups_test = fetch(subset="test", categories=categories)
class_names = ["atheism", "christian"]

vectorizer = TfidfVectorizer(lowercase=False)
train_vectors = vectorizer.fit_transform(newsgroups_train.data)
test_vectors = vectorizer.transform(newsgroups_test.data)

rf = RandomForestClassifier(n_estimators=100, random_state=0)
rf.fit(train_vectors, newsgroups_train.target)
print("F1:", round(f1_score(newsgroups_test.target, rf.predict(test_vectors), average="binary"), 3))

c = make_pipeline(vectorizer, rf)
idx = 82
print("Probabilities:", c.predict_proba([newsgroups_test.data[idx]]))

explainer = LimeTextExplainer(class_names=class_names)
exp = explainer.explain_instance(newsgroups_test.data[idx], c.predict_proba, num_features=6)
print("True class:", class_names[newsgroups_test.target[idx]])
print("Explanation:", exp.as_list())
print("Standard errors:", [round(error, 5) for _, error in exp.standard_errors[1]])

# what the surrogate says of the two largest words, against what the model says without them
without = test_vectors[idx].copy()
for word, _ in exp.as_list()[:2]:
    without[0, vectorizer.vocabulary_[word]] = 0
before, after = rf.predict_proba(test_vectors[idx])[0, 1], rf.predict_proba(without)[0, 1]
print("Difference of the model:", after - before)
print("Difference of the surrogate:", -sum(value for _, value in exp.as_list()[:2]))

exp.as_pyplot_figure()
page = Path(tempfile.mkdtemp()) / "oi.html"
exp.save_to_file(str(page), text=True)
print("Page:", page)
