"""Between the library and Snakemake: configuration, the grid of runs, digests of the code, and the params of rules."""
