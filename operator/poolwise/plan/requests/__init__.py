"""What a spec asks for, parsed once: the work, and the limits around it.

Belongs here: everything between a resource as the API server has it and the values that the model
and the candidates take. Raises :class:`poolwise.errors.InvalidInput` and nothing else.
"""
