"""The model's own predict: the floor."""

NAME = "predict"
ANSWERS = "the prediction alone"
PACKAGE = "scikit-learn"
ROWS = 1000


def prepare(case):
    return case.model.predict
