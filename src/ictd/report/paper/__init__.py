"""The paper's part: ``results`` reads the results of its steps, and the other modules have what is shown of them."""
