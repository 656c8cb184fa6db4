"""What is perturbed and how it is weighted. Designs know no model."""

from limes.designs.columns import BinStatistics
from limes.designs.exchangeable import ExchangeableDesign
from limes.designs.product import ProductDesign, ProductFamily

__all__ = ["BinStatistics", "ExchangeableDesign", "ProductDesign", "ProductFamily"]
