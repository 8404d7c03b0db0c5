"""What earlier passes knew, worked out anew from the objects as they are.

Belongs here: lost records and stories, pools that are gone, refusals, and what workloads have shown
of the model. Nothing else in the plan but the pass as a whole (:mod:`poolwise.plan.cluster`) asks.
"""
