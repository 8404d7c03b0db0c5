"""Accuracy of the model, one module per target; each is a list of pairs and a way to refit."""
