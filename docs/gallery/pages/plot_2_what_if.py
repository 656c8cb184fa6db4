"""
What-if page
============

Move a row's values, and see prediction, contributions, rule and diagnosis follow.

.. index:: what if, simulator, sliders, interactive
"""

# %%
# .. image:: /images/what-if.png
#    :alt: A loan's values with sliders and choices, their contributions as bars, and the prediction beside them
#
# One command serves it, on this machine alone:
#
# .. code-block:: text
#
#     limes app model.skops loans.parquet --id loan --drop target
#
# :doc:`/what-if` says what can be moved, and what the page is safe from.

# sphinx_gallery_thumbnail_path = 'images/what-if.png'
