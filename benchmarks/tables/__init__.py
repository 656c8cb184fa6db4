"""The main job on real tables: what is exact, how long it takes, and whether sampling agrees."""
