"""What the workflow makes of the results: claims with verdicts, tables, figures and pages.

- A part is the paper's part (``paper``) or a study (``part``).  Its results are claims, numbers, tables and figures,
  which the step ``ictd.steps.report.results`` makes, and which the notebook shows (``page``).
- A claim is a statistic with a threshold in one setting (``claim.Claim``).  Claims of the same name test the same
  statement in several settings.  Their kind is "paper" if they decide a sentence of the paper or a statement of its
  theory, and "ours" if the paper does not state them.
- A sentence is one of the paper's sentences on its experiments (``paper.sentences.Sentence``).  Its tests are names of
  claims, and its parts are the claims of these names in the cells that the sentence covers.  Only sentences of the kind
  "claim" are counted.
"""
