"""What a release is made of: one version everywhere, its notes, its files, its charts."""
