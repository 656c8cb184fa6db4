"""Letters about decisions on real tables: do their reasons come from the account of the prediction?"""
