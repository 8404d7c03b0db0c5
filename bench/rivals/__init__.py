"""Other people's models, asked what ours is asked: for comparison only, never to fit on."""
