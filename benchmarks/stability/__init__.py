"""How often two runs at defaults, alike but for the seed, show different five strongest features."""
