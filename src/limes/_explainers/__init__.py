"""The explainers that users call: tables, texts and images become arrays here."""
