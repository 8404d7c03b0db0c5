"""Objects that slipped through admission: valid ones with junk in some of their fields."""

import copy

from hypothesis import strategies as st

junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1e400", "-1", "0", "0.5", "5ms", "P1D", "Auto", "None", "9" * 30]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=4,
)


def paths(document, at=()):
    for name, value in document.items():
        yield (*at, name)
        if isinstance(value, dict):
            yield from paths(value, (*at, name))


@st.composite
def broken(draw, valid):
    """A copy of a valid object with one to three fields replaced; its kind stays."""
    document = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        found = sorted(path for path in paths(document) if path != ("kind",))
        *parents, last = draw(st.sampled_from(found))
        place = document
        for part in parents:
            place = place[part]
        place[last] = draw(junk)
    return document
