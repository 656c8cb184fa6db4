"""What is perturbed and how it is weighted. Designs know no model."""

from limes.designs.exchangeable import ExchangeableDesign
from limes.designs.product import ProductDesign, ProductFamily

__all__ = ["ExchangeableDesign", "ProductDesign", "ProductFamily"]
