"""The paper's theory, checked numerically.

The mathematics, which reads and writes no files:

- ``recursion``: the embeddings Z_0, ..., Z_L on enumerated prompts, and their gradients (proofs of Lemmas 2 and 3),
- ``updates``: expected updates and their norms, J and J' (section "Global Minimizer of Pretraining Loss"),
- ``statements``: the two sides of each statement, a function for each statement,
- ``family``: a set of weights that has the limit v, and of which theta^TD is one element,
- ``decimals``: theta^TD in decimal arithmetic, where differences of float64 numbers are all rounding.
"""
