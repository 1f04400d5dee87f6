"""What goes wrong with wheels; they belong to the tree in `errors`."""

from tsuzuki.errors import BadRequest, Conflict, TooLarge, TsuzukiError


class BadWheel(BadRequest):
    """invalid wheel"""


class WheelTooLarge(TooLarge):
    """wheel too large"""


class WheelNotFound(TsuzukiError):
    """wheel not found"""

    error_id = "ERR-TSUZUKI-0023"
    http_status = 404


class WheelConflict(Conflict):
    """wheel version must be greater than existing latest version"""

    error_id = "ERR-TSUZUKI-0022"


class WheelSyncFailed(TsuzukiError):
    """wheel sync failed"""

    error_id = "ERR-TSUZUKI-0024"
