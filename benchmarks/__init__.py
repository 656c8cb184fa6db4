"""Side by side with other libraries; see benchmarks/README.md."""
