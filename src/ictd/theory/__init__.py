"""The paper's theory, checked numerically: one function per statement in ``ictd.theory.statements``."""
