"""The charts, as Helm renders them and as a real API server takes them."""
