"""What a user calls: words, columns and pixels stop here."""
