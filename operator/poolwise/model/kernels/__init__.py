"""How long one kernel takes: matrix products, attention, grouped experts.

Each is a roofline with a fixed launch, efficiencies that saturate with size, and what its
algorithm adds (tiles, splits, quantisation of its input). :mod:`.constants` looks the fitted
factors up; :mod:`.predicting` puts both together.
"""
