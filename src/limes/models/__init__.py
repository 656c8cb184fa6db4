"""What can be read off a model. Models know no design."""

from limes.models import forms
from limes.models.read import read
from limes.models.readers.sklearn_isolation import path_length

__all__ = ["forms", "path_length", "read"]
