"""What the families of distributed optimisers share: they know of each other through this alone."""
