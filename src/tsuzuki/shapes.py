"""What secrets look like where no name stands before them: headers, addresses, keys of known makers.

Every repetition is bounded, or keeps what it has taken: no text takes more than linear time.
"""

import re
from typing import Final, NamedTuple

HIDDEN: Final = "***"
_SAYS: Final = r"\\{0,7}(?:['\"]\s{0,9},\s{0,9}b?['\"]|['\"]?\s{0,9}(?:=>|[:=])\s{0,9}(?:b(?=['\"]))?\\{0,7})"
"""Between a name and its value: in a header, JSON (also inside of a text), a dict or a list of pairs."""
_SCHEMES: Final = "bearer|basic|token|apikey|api-key|negotiate|ntlm|splunk|dpop|sso-key|key"
_LONG_SCHEMES: Final = "digest|oauth|hawk|aws4-hmac-sha256"
_NO_COUNT: Final = r"(?!\d{1,9}(?:[&#\s'\"]|$))"


class Shape(NamedTuple):
    """How a kind of secret looks; a text without any of its words, in lower case, has none."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    shown: str = rf"\1{HIDDEN}"


def _made(*kinds: str) -> re.Pattern[str]:
    return re.compile("|".join(kinds))


PRIVATE_KEYS: Final = Shape(
    ("private key", "nkey seed"),
    re.compile(r"(-----BEGIN [A-Z ]{0,40}(?:PRIVATE KEY(?: BLOCK)?|NKEY SEED)-----)(?:[^-]|-(?!----)){1,16384}+"),
)
_HEADERS: Final = (
    Shape(
        ("authoriz",),
        re.compile(rf"(?i)\b((?:proxy-)?authorization{_SAYS}['\"]?(?:{_LONG_SCHEMES})\s)[^\n]{{1,4000}}"),
    ),
    Shape(
        ("authoriz",),
        re.compile(rf"(?i)\b((?:proxy-)?authorization{_SAYS}['\"]?(?:(?:{_SCHEMES})\s{{1,9}})?)[^\s'\",}}\\]+"),
    ),
    Shape(("bearer",), re.compile(r"(?i)\b(bearer\s{1,9})[A-Za-z0-9._~+/=-]{8,}")),
    Shape(
        ("cookie",),
        re.compile(rf"(?i)\b((?:set-)?cookie{_SAYS}['\"]?)[\w!#$%&*+.^`|~-]{{1,100}}=[^'\"\n\\}}]{{1,4000}}"),
    ),
)
_ADDRESSES: Final = (
    Shape(("sig=", "signature="), re.compile(r"(?i)([?&](?:x-(?:amz|goog)-)?sig(?:nature)?=)[^\s'\"&]{1,2000}")),
    Shape(
        tuple(f"{sign}{name}=" for sign in ("?", "&", "amp;") for name in ("key", "auth", "jwt", "pw")),
        re.compile(rf"(?i)((?:[?&]|&amp;)(?:key|auth|jwt|pw)=){_NO_COUNT}[^\s'\"&#]{{1,2000}}"),
    ),
    Shape(
        ("@",),
        re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"]{0,200}:)[^\s/\"]{1,500}(?=@)"),
    ),
    Shape(("@",), re.compile(r"(\b(?:nats|tls)://)[^\s/:@]{1,500}(?=@)")),  # a token in a user's place
    Shape(("@",), re.compile(r"(\bhttps?://)[A-Za-z0-9_-]{20,500}(?=@)")),
    Shape(("thin:",), re.compile(r"(:thin:[^\s/@]{1,100}/)[^\s@/]{1,200}(?=@)")),
    Shape(("hooks.slack",), re.compile(r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/-]{8,200}")),
    Shape(("/webhooks/",), re.compile(r"(/api/webhooks/\d{5,25}/)[\w-]{20,200}")),
    Shape((":aa",), re.compile(r"(\b(?:bot)?\d{8,10}:)AA[\w-]{30,40}\b")),
)
_SETTINGS: Final = (
    Shape(("_pass=",), re.compile(rf"(\b[A-Z][A-Z0-9_]{{0,60}}_PASS=['\"]?){_NO_COUNT}[^\s'\"&,;]{{1,500}}")),
    Shape(("pass:",), re.compile(r"(?m)(^[ \t]{1,40}pass:[ \t]{1,9})(?!\d+[ \t]*$)[^\s#][^\n]{0,500}$")),
    Shape(
        ("auth'", 'auth"', "auth\\"),
        re.compile(
            r"(?i)(['\"]_?auth\\{0,7}['\"]\s{0,9}:\s{0,9}\\{0,7}['\"])[A-Za-z0-9+/]{12,4000}={0,2}(?=\\{0,7}['\"])"
        ),
    ),
    Shape(("_auth=",), re.compile(r"((?:^|[\s:])_auth=|\bREDISCLI_AUTH=)\S{1,4000}")),
    Shape(
        ("password",),  # .netrc
        re.compile(
            r"(\b(?:machine\s{1,9}\S{1,200}|default)\s{1,9}login\s{1,9}\S{1,200}\s{1,9}password\s{1,9})\S{1,500}"
        ),
    ),
)
_OPTIONS: Final = (
    Shape(  # a user of a command line, who is no pair of numbers
        ("-u",),
        re.compile(r"((?:\s|^)(?:-u|--user)[\s=]\s{0,9}['\"]?[^\s'\":]{1,200}:)(?!\d+(?:\s|$))[^\s'\"]{1,500}"),
    ),
    Shape(("-pass",), re.compile(r"(\s-pass(?:in|out)?\s{1,9}pass:)[^\s'\"]{1,500}")),
    Shape(("storepass", "keypass"), re.compile(r"(\s-(?:store|key)pass\s{1,9})[^\s'\"-][^\s'\"]{0,500}")),
)
_DASHED: Final = "gl(?:pat|dt|rt|ptt|oas)-|xox[abeprs]-|xapp-|nvapi-|tskey-"
_MAKERS: Final = (
    Shape(
        ("sk-", "pk-", "rk-", "glpat-", "gldt-", "glrt-", "glptt-", "gloas-", "xox", "xapp-", "nvapi-", "tskey-"),
        _made(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}", rf"\b(?:{_DASHED})[A-Za-z0-9_-]{{10,}}"),
        shown=HIDDEN,
    ),
    Shape(
        (
            *(
                "ghp_",
                "gho_",
                "ghs_",
                "ghu_",
                "ghr_",
                "github_pat_",
                "tsz_",
                "k_live_",
                "k_test_",
                "gsk_",
                "hf_",
                "npm_",
            ),
            *("dop_v1_", "shpat_", "shpss_", "lin_api_", "pcsk_", "sbp_", "whsec_", "dckr_pat_", "figd_"),
        ),
        _made(
            r"\b(?:gh[oprsu]_|github_pat_|tsz_)[A-Za-z0-9_-]{10,}",
            r"\b(?:[spr]k_(?:live|test)|gsk|hf|npm|dop_v1|shpat|shpss|lin_api|pcsk|sbp|whsec)_[A-Za-z0-9]{16,}",
            r"\b(?:dckr_pat_|figd_)[A-Za-z0-9_-]{16,}",
        ),
        shown=HIDDEN,
    ),
    Shape(
        ("aiza", "akia", "asia", "pypi-age", "ya29.", "sg.", "age-secret", "sq0csp"),
        _made(
            r"\b(?:AIza|AKIA|pypi-AgE|ya29\.|sq0csp-)[A-Za-z0-9_-]{10,}",
            r"\bASIA[A-Z0-9]{12,}",
            r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}",
            r"\bSG\.[\w-]{16,64}\.[\w-]{16,64}",
        ),
        shown=HIDDEN,
    ),
    Shape(
        ("eyj",),
        _made(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?"),
        shown=HIDDEN,
    ),
)
SHAPES: Final = (*_HEADERS, *_ADDRESSES, *_SETTINGS, *_OPTIONS, *_MAKERS)
SEED: Final = re.compile(r"S[UAOCNX][A-Z2-7]{56}(?![A-Za-z0-9])")
"""The secret half of a pair of keys of NATS."""
_SHORTESTSEED: Final = 58


def shaped(text: str, low: str) -> str:
    """Gives a text without what looks like a secret; `low` is the text in lower case."""
    for shape in SHAPES:
        if any(map(low.__contains__, shape.words)):
            text = shape.pattern.sub(shape.shown, text)
    return SEED.sub(HIDDEN, text) if "S" in text else text
