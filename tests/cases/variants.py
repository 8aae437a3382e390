"""What a variant of a smarthost's reply (`V name STAGE "reply" EXPECT words`) must lead to."""

import json
import re

from tests.cases import words
from tests.cases.play import Play
from tests.cases.upstream import Variant

STATES = {"failed", "deferred", "delivered_to_relay", "unknown", "blocked"}


async def as_told(play: Play, variant: Variant) -> None:
    """Note where a variant's words are not true of its only mail."""
    record = await play.record(play.sends[0].body["requestId"])
    (told,) = record["recipients"]
    state = words.STATES[told["status"]]
    suppressed = await play.suppressed() - play.facts["suppressed"]
    for word in variant.words:
        allowed = {one for one in STATES if re.search(rf"(^|_or_){one}(_or_|_all_|$)", word)}
        if allowed:
            play.fault(state in allowed, f"{state}, not {word}: {told}")
        if word.endswith("no_suppression"):
            play.fault(not suppressed, f"suppressed: {suppressed}")
        elif word == "suppression_candidate":
            play.fault(suppressed, "nobody was suppressed")
        elif word == "full_text_kept":
            lines = re.findall(r"\d\.\d\.\d+ ([^\r]*)\r\n", json.loads(variant.line.partition(" ")[2]))
            play.fault(all(line in str(told.get("reply")) for line in lines), f"{lines} are not in {told}")
        elif word == "connection_closed":
            play.fault(not play.house.sink.connected, "the connection is still open")
        elif not allowed:
            raise ValueError(f"{word!r} is not known to the driver")
