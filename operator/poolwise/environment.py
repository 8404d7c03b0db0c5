"""Settings from environment variables: a field's upper-case name behind ``POOLWISE_``.

``POOLWISE_CURRENCY=EUR`` sets ``currency``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from pydantic import ValidationError

from poolwise.errors import InvalidInput
from poolwise.settings import Settings

PREFIX = "POOLWISE_"
_SERVICE_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT\w*|PORT(_\d+_\w+)?)$")
"""Variables that Kubernetes itself sets for each Service of the namespace."""
_NAME = (
    "must be lower-case letters, digits and -, at most 63 characters, the first and the last no -"
)
_FORMS = {
    "currency": "must be three capitals, as EUR",
    "namespace_shares": "must be NAMESPACE=SHARE, as research=0.5, with a share from 0 to 1",
}
"""What a field's pattern says in words, where it is not that of a name."""


def from_environment(environ: Mapping[str, str]) -> Settings:
    """Settings from the variables that begin with ``POOLWISE_``.

    :raises InvalidInput: for a value that cannot be used, or a name that is a setting's but for a
        typing error. Other unknown names are left alone: Kubernetes sets some for each Service.
    """
    given = {}
    for variable, value in environ.items():
        if variable.startswith(PREFIX) and not _SERVICE_LINK.search(variable):
            field = variable.removeprefix(PREFIX).lower()
            if field in Settings.model_fields:
                given[field] = value
            else:
                _refuse_typo(variable)
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise _sentence(error) from error


def _refuse_typo(variable: str) -> None:
    known = [PREFIX + field.upper() for field in Settings.model_fields]
    near = difflib.get_close_matches(variable, known, n=1, cutoff=0.9)
    if near:
        raise InvalidInput(f"environment variable {variable}", f"unknown; did you mean {near[0]}?")


def _sentence(error: ValidationError) -> InvalidInput:
    first = error.errors()[0]
    problem = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # a rule about several fields, which names them itself
        return InvalidInput(f"environment variables {PREFIX}*", problem)
    field = str(first["loc"][0])
    if first["type"] == "string_pattern_mismatch":
        problem = _FORMS.get(field, _NAME)
    return InvalidInput(
        f"environment variable {PREFIX}{field.upper()}",
        f"{first['input']!r} cannot be used: {problem[:1].lower()}{problem[1:]} "
        f"({Settings.model_fields[field].description})",
    )
