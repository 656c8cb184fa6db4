"""What can be read off a model. Models know no design."""

from limes.models import forms
from limes.models.readers.sklearn_trees import path_length
from limes.models.reading import read

__all__ = ["forms", "path_length", "read"]
