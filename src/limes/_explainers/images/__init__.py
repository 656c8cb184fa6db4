"""Images: their superpixels and fills, and models bound to one image."""
