"""A renderer of formulas as MathML, which browsers show without a script and without a network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(self, node):
    """Write a formula in a line of text."""
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a formula on a line of its own."""
    self.body.append(f'<div class="math" style="overflow-y: hidden">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Add the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True}
