"""The generated parts of the charts: ``python -m e2e.chart`` writes, ``--check`` compares them.

What a value means is said once, in a comment of ``values.yaml`` (``# -- text``, as helm-docs reads
them); what a setting is, in the operator's own model. From these follow the tables of the READMEs,
the descriptions and the settings of ``values.schema.json``, and the defaults that templates fall
back to.
"""
