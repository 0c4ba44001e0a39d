"""What the workflow makes of the results: claims with verdicts, tables, figures and pages."""
