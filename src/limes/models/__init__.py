"""What can be read off a model. Models know no design."""

from limes.models import forms
from limes.models.read import read

__all__ = ["forms", "read"]
