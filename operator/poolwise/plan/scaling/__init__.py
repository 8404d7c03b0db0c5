"""How many replicas a service needs: latency tails predicted for when a start would end.

:func:`poolwise.plan.scaling.controller.decide` is a pure function of the service, what is
remembered and what is seen; the decision carries its reason, and what to remember.
"""
