"""The operator's image: wheels gathered here, an image built from them without a network.

:mod:`target` asks the base image for its Python, :mod:`wheels` gathers what that Python installs,
:mod:`engine` runs the container engine, :mod:`checks` looks at the result.
"""
