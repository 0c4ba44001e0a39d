"""What runs the work: configuration, the grid, files, digests of the code, and the params of rules."""
