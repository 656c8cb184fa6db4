"""Texts: strings as lime has them, the limit, and lime's own law."""
