"""``poolwise-e2e``: one image with what the suite on kind runs in pods.

``torchrun`` meets as real training meets (:mod:`e2e.images.rendezvous`), ``vllm`` answers as a real
engine answers (:mod:`e2e.images.double`), ``load`` asks it (:mod:`e2e.images.load`). All three are
built on the operator's image, which has their libraries, and run without Poolwise's own code, but
for an engine that shall be as fast as the serving model says (:mod:`e2e.images.double.modelled`).
"""
