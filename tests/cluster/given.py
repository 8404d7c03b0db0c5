"""Objects in few words, for the tests of what is known of a cluster."""


def job(name="train", *, version=1, uid="uid-1", owner="uid-owner", **fields):
    """A Job of ``owner``."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "research",
            "uid": uid,
            "resourceVersion": str(version),
            "ownerReferences": [{"uid": owner, "controller": True}],
        },
        **fields,
    }
