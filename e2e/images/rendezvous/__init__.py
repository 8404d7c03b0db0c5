"""``torchrun``, played: every rank of a job meets all others over TCP, or says who is missing.

What is real: the names of the headless Service, looked up until pods come up; the store on node 0;
one process for each rank; a barrier for each step. What is played: the training.

As with torchrun's static rendezvous, node 0 hosts the store, and a rank that is lost ends the round
for all. Unlike it, the survivors then wait for the lost rank's successor instead of failing, as
they would under torchrun's ``--max-restarts``; so a pod that is replaced joins again.

The parts: :mod:`settings` (from torchrun's environment), :mod:`round` (who has joined, pure),
:mod:`store` (the server of node 0), :mod:`rank` (one client), :mod:`agent` (the program).
"""
