"""Steps that make and check what readers see: the results of a part, the article, the manifest and the reference."""
