"""Draw a part of a graph as a PNG picture; needs the extra `commonplace[png]`."""

from __future__ import annotations

from commonplace.errors import MissingExtraError, UsageError
from commonplace.formats.drawing import Drawing
from commonplace.formats.drawing_svg import to_svg

_MOST_SCALE = 8.0


def to_png(drawing: Drawing, *, scale: float = 2.0) -> bytes:
    """Return a drawing as a PNG file, on light ground.

    Args:
        scale: how many pixels a unit of the drawing takes, above 0 and up to 8.

    Raises:
        MissingExtraError: resvg is not installed.
        UsageError: two nodes have the same id, or the scale is out of its range.
    """
    if not isinstance(scale, int | float) or isinstance(scale, bool) or not 0 < scale <= _MOST_SCALE:
        raise UsageError(f"scale is {scale!r}, it must be a number above 0 and up to {_MOST_SCALE:g}")
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise MissingExtraError(
            "a PNG picture needs resvg",
            remedy="install it with: pip install 'commonplace[png]', or draw an SVG instead",
        ) from error
    return bytes(svg_to_bytes(svg_string=to_svg(drawing), zoom=float(scale)))
