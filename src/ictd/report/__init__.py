"""What is made of the results: claims with verdicts, tables, figures and pages."""
