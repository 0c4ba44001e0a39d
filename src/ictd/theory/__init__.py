"""The paper's theory, checked numerically.

These modules contain the mathematics, and read and write no files:

- ``recursion``: the embeddings Z_0, ..., Z_L on enumerated prompts, and their gradients (proofs of Lemmas 2 and 3),
- ``updates``: expected updates and their norms, J and J' (section "Global Minimizer of Pretraining Loss"),
- ``inequalities``: the two sides of each statement, with one function for each statement,
- ``family``: a set of weights with the limit v, which contains theta^TD.
"""
