"""A drawn picture as PNG, for those who cannot show SVG; by resvg, an optional extra."""

from typing import Final

from tsuzuki import extras
from tsuzuki.errors import BadUsage

TWICE: Final = 2.0
"""How many dots a point of the picture has, so that it is sharp on the screens of today."""
_FAMILIES: Final = (
    *("DejaVu Sans", "Liberation Sans", "Noto Sans", "Noto Sans CJK JP", "Arial", "Helvetica Neue", "Helvetica"),
    *("Segoe UI", "Hiragino Sans", "Yu Gothic", "FreeSans", "Ubuntu", "Cantarell"),
)
_LETTER: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9" font-family="sans-serif">{}</text></svg>'
)


def png(picture: str) -> bytes:
    """Gives an SVG picture as PNG, on white; refuses where there is no font to write its words with."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise BadUsage(f"{extras.missing(error) or error}, or name the picture .svg") from error
    empty = svg_to_bytes(svg_string=_LETTER.format(""))
    for family in _FAMILIES:
        if svg_to_bytes(svg_string=_LETTER.format("x"), sans_serif_family=family) != empty:
            return bytes(svg_to_bytes(svg_string=picture, zoom=TWICE, background="white", sans_serif_family=family))
    raise BadUsage(f"no font is there for a PNG (looked for {', '.join(_FAMILIES)}): install one, or name it .svg")
