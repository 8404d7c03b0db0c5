"""Random histories of a whole cluster, played to the whole operator in time that does not pass."""
