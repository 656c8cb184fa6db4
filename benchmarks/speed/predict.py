"""The model's own predict: the floor."""

NAME = "predict"
ROWS = 1000


def prepare(case):
    return case.model.predict
