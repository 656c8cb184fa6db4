"""Random models, options and rows, compared with oracles that share nothing with the library.

``python -m fuzz`` (or ``make fuzz``) draws cases, a seed each. A case is a short script: columns, a target,
a model. It is run, explained under several sets of options at many rows, and every coefficient is compared
with an oracle: bins, laws and weights from their definition, and the model's own answers on a grid or at all
2^d subsets. A case that fails is made as small as it still fails, and printed.
"""
