"""The paper's figures, and what the report shows beside them."""
