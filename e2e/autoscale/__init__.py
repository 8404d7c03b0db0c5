"""Scaling for real, beside its simulation.

Engines without a model (:mod:`e2e.images.double.modelled`) answer over HTTP as fast as the serving
model says, a trace is replayed against those that are ready, and the operator, in a process of its
own or installed by its chart, scales an InferenceService before a real API server. Then the same
trace goes through the simulator with the same controller, the same start delay and the same
settings, and both are compared: the share of requests inside the targets, and replica-hours.

Nothing is compressed but the trace: engines, operator, probes and starts run in real time.

The parts: :mod:`trace` (what is replayed), :mod:`service` (what is scaled), :mod:`pods` (their
lives, as everybody sees them), :mod:`kubelet` (processes in place of containers), :mod:`twin` (the
simulation), :mod:`live` (the run), :mod:`comparison`.
"""
