"""What is perturbed and how it is weighted. Designs know no model."""

from limes.designs.product import ProductDesign, ProductFamily

__all__ = ["ProductDesign", "ProductFamily"]
