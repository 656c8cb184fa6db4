"""Side by side with other libraries; see README.md here."""
