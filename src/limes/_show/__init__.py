"""Drawings of explanations and diagnoses: terminal, HTML, plots, images, texts, data frames.

One file a medium. Modules are imported when something is drawn (`limes._explanation.drawing.drawer`), so that
explaining loads no plotting, table or template library.
"""
