"""Other libraries' calls on top of this one: old code, better answers."""
