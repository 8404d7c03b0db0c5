"""Programs that hold Poolwise against measurements, and fit its constants to them.

``python -m bench.fit.training --data DIR`` and its neighbours write the shipped efficiencies,
``python -m bench.model --data DIR`` says how well predictions meet what was measured. DIR holds
the measured tables (README.md there names the columns); they are not shipped, for their licences.
"""
