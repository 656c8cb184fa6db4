"""Models: the forms that can be read off them, and how they are called. Independent of designs."""

from limes.models import forms
from limes.models._reading import read
from limes.models.readers.sklearn_ensembles import path_length

__all__ = ["forms", "path_length", "read"]
