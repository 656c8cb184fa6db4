"""Designs: how rows are perturbed and weighted, independently of any model."""

from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._joint import JointDesign
from limes.designs._marginals import BinStatistics
from limes.designs._product import ProductDesign, ProductFamily

__all__ = ["BinStatistics", "ExchangeableDesign", "JointDesign", "ProductDesign", "ProductFamily"]
