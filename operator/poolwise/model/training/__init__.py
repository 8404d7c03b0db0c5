"""One optimizer step: its memory, its layers, its communication, and the time of it all."""
