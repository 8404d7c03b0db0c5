"""Inference gateways (Gateway API Inference Extension): which InferencePool stands before a
service, who picks the replica for each request there, and whether requests are held while there is
none.

Objects of these APIs are anybody's who may write in the namespace: what of them cannot be read is
one sentence in a condition of the service, and no more.
"""
