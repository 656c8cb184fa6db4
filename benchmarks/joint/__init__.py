"""The joint law beside the product law on real tables, and an attack that only one of them sees through."""
