"""Logs: one JSON object a line on stderr, control characters escaped, and no secret in it."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message"}
SECRETS = re.compile(r"gk_live_[A-Za-z0-9_-]{8,}|(?<=://)[^/@\s:]+:[^@\s]+(?=@)|(?i:AUTH (?:PLAIN|LOGIN)) \S+")


class JsonLines(logging.Formatter):
    """Turns a record into one line of JSON: time, level, logger, event, and whatever `extra` adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Make the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {k: v for k, v in record.__dict__.items() if k not in STANDARD and not k.startswith("_")}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return SECRETS.sub("[secret]", json.dumps(line, default=str))


def set_up(level: str) -> None:
    """Log to stderr from now on; libraries that log content or access lines are kept quiet."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("mail.log", "uvicorn.access", "asyncio", "aiosmtplib", "alembic", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
