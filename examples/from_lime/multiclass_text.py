"""The calls of lime's tutorial on texts, many classes: labels, top labels, and the page of one class.

Only the import is another, and the posts are composed here, as nothing is downloaded.
"""

from __future__ import annotations

from posts import fetch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from limes.compat.lime.lime_text import LimeTextExplainer

newsgroups_train, newsgroups_test = fetch(subset="train"), fetch(subset="test")
class_names = [name.rsplit(".", 1)[1] for name in newsgroups_train.target_names]

vectorizer = TfidfVectorizer(lowercase=False)
train_vectors = vectorizer.fit_transform(newsgroups_train.data)
test_vectors = vectorizer.transform(newsgroups_test.data)
nb = MultinomialNB(alpha=0.01)
nb.fit(train_vectors, newsgroups_train.target)
print("F1:", round(f1_score(newsgroups_test.target, nb.predict(test_vectors), average="weighted"), 3))

c = make_pipeline(vectorizer, nb)
explainer = LimeTextExplainer(class_names=class_names)

idx = 40
exp = explainer.explain_instance(newsgroups_test.data[idx], c.predict_proba, num_features=6, labels=[0, 3])
print("Predicted class:", class_names[nb.predict(test_vectors[idx])[0]])
print("True class:", class_names[newsgroups_test.target[idx]])
for label in (0, 3):
    print("Explanation for class", class_names[label])
    print("\n".join(map(str, exp.as_list(label=label))))

exp = explainer.explain_instance(newsgroups_test.data[idx], c.predict_proba, num_features=6, top_labels=2)
print("Top labels:", exp.available_labels())
print("Scores:", {label: round(exp.score[label], 3) for label in exp.available_labels()})
top = exp.available_labels()[0]
print("Page of the first:", len(exp.as_html(text=newsgroups_test.data[idx], labels=(top,))), "characters")
