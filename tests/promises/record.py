"""The record of a run that the checks read, as a whole or of one tenant: rows and events, found by what they are about."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tests.promises.shapes import SLACK, Arrival, Call, Row, Rows, Tenure, key_of, moment

BEGUN = {"send.queued": "queued", "send.scheduled": "scheduled", "send.held": "held"}
"""The events of acceptance, and the state in which each leaves the deliveries."""
BIRTHS = BEGUN | {"policy.blocked": "blocked"}


@dataclass(frozen=True)
class History:
    """A run; `cooldown`, `lateness` and `give_up` in seconds, as set, `max_attempts` too (0: none).

    `drained` where nothing may be left on its way, `leases_bind` where the policy of leases is enforced.
    """

    calls: Sequence[Call]
    arrivals: Sequence[Arrival]
    rows: Rows
    cooldown: float = 600.0
    drained: bool = True
    one_clock: bool = True
    leases_bind: bool = True
    lateness: float = 86_400.0
    give_up: float = 172_800.0
    max_attempts: int = 0
    events: Sequence[Row] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the events in the store's order."""
        read = [dict(row) | {"data": json.loads(row["data"])} for row in self.rows.events]
        object.__setattr__(self, "events", sorted(read, key=lambda row: (row["at_us"], row["id"])))

    def parts(self) -> "list[History]":
        """The history of each tenant alone. An arrival that no tenant knows of is in the first.

        Raises ValueError for a call of nobody where there are several tenants.
        """
        names = sorted(self.rows.tenants() | {call.tenant for call in self.calls if call.tenant is not None})
        if len(names) < 2:
            return [self]
        if any(call.tenant is None for call in self.calls):
            msg = f"whose is a call, among {names}?"
            raise ValueError(msg)
        whose = [self.by_message.get(one.message_id, {"tenant": names[0]})["tenant"] for one in self.arrivals]
        return [
            replace(
                self,
                calls=[call for call in self.calls if call.tenant == name],
                arrivals=[one for one, tenant in zip(self.arrivals, whose, strict=True) if tenant == name],
                rows=self.rows.of(name),
            )
            for name in names
        ]

    # --- rows ---------------------------------------------------------------------------------------------------------

    @cached_property
    def sends(self) -> dict[str, Row]:
        """Send records by request id."""
        return {row["id"]: row for row in self.rows.sends}

    @cached_property
    def by_message(self) -> dict[str, Row]:
        """Send records by Message-ID."""
        return {row["message_id"]: row for row in self.rows.sends}

    @cached_property
    def _acts(self) -> defaultdict[str, list[Call]]:
        found: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            found[call.act].append(call)
        return found

    def asked(self, act: str, until: int | None, **about: object) -> bool:
        """Whether a call may have done this by a time (the store's, None: any); `about` are members of its body."""
        return any(
            call.may_have_done
            and (until is None or not self.one_clock or call.asked <= until + SLACK)
            and all(call.body.get(name) == value for name, value in about.items())
            for call in self._acts[act]
        )

    @cached_property
    def of_send(self) -> defaultdict[str, list[Row]]:
        """Deliveries by request id."""
        return _grouped(self.rows.deliveries, "send_id")

    @cached_property
    def tries(self) -> defaultdict[str, list[Row]]:
        """Attempts by delivery, in the order of their numbers."""
        return _grouped(sorted(self.rows.attempts, key=lambda row: row["claim_no"]), "delivery_id")

    @cached_property
    def arrived(self) -> Counter[tuple[str, str]]:
        """How often each (Message-ID, person key) came to the sink."""
        return Counter((one.message_id, key_of(one.to)) for one in self.arrivals)

    def count(self, delivery: Row) -> int:
        """How often a delivery came to the sink."""
        return self.arrived[self.sends[delivery["send_id"]]["message_id"], delivery["contact"]]

    def decided(self, send: str) -> list[Row]:
        """The decisions about a send from its last acceptance on, in their order; what it was before is over."""
        mine = self.decisions[send]
        begins = [index for index, row in enumerate(mine) if row["moment"] == "acceptance"]
        return mine[begins[-1] :] if begins else []

    def acceptances(self, send: str) -> list[Row]:
        """The decisions at its acceptance: several where it was refused, or stopped, and asked for again."""
        return [row for row in self.decisions[send] if row["moment"] == "acceptance"]

    def passes(self, send: str) -> list[Row]:
        """Those of them that let something of it go."""
        return [row for row in self.decided(send) if row["verdict"] == "pass"]

    def let_go(self, delivery: Row) -> list[Row]:
        """Those that certainly let this delivery go: a release need not be about all recipients."""
        alone = len(self.of_send[delivery["send_id"]]) == 1
        times = {e["at_us"] for e in self.story(delivery) if e["name"] == "delivery.queued"} | {delivery["judged_us"]}
        found = self.passes(delivery["send_id"])
        return [row for row in found if alone or row["moment"] == "acceptance" or row["at_us"] in times]

    @cached_property
    def decisions(self) -> defaultdict[str, list[Row]]:
        """Decisions by request id, in the order of their numbers."""
        return _grouped(sorted(self.rows.decisions, key=lambda row: row["no"]), "send_id")

    # --- events -------------------------------------------------------------------------------------------------------

    @cached_property
    def about(self) -> defaultdict[str, list[Row]]:
        """Events by request id."""
        return _grouped(self.events, "send_id")

    @cached_property
    def named(self) -> defaultdict[str, list[Row]]:
        """Events by name."""
        return _grouped(self.events, "name")

    def birth(self, send: str) -> Row | None:
        """The event of a send's last acceptance, or of its refusal."""
        return next((e for e in reversed(self.about[send]) if e["name"] in BIRTHS), None)

    def story(self, delivery: Row) -> list[Row]:
        """What has happened to a delivery, from its birth on."""
        birth = self.birth(delivery["send_id"])
        mine = [e for e in self.about[delivery["send_id"]] if e["data"].get("delivery") == delivery["id"]]
        if birth is None:
            return mine
        return [birth, *(e for e in mine if (e["at_us"], e["id"]) > (birth["at_us"], birth["id"]))]

    def names(self, delivery: Row) -> set[str]:
        """The names of all events of one delivery."""
        return {e["name"] for e in self.about[delivery["send_id"]] if e["data"].get("delivery") == delivery["id"]}

    def life(self, delivery: Row) -> list[Row]:
        """What has happened to a delivery from the last acceptance of its send on; nothing where there was none.

        Before that it may have been another person's: what was stopped may be judged anew, for others.
        """
        told = self.about[delivery["send_id"]]
        mine = [e for e in told if e["name"] in BEGUN or e["data"].get("delivery") == delivery["id"]]
        begins = [index for index, e in enumerate(mine) if e["name"] in BEGUN]
        return mine[begins[-1] :] if begins else []

    def accepted_at(self, delivery: Row) -> int | None:
        """When (the store's microseconds) a delivery was let go; None where it never was. What waited: by its release."""
        lets = (e["at_us"] for e in self.life(delivery) if e["name"] in ("send.queued", "delivery.queued"))
        return next(lets, None)

    def permits(self, delivery: Row) -> set[int]:
        """When (the store's microseconds) it got its permits."""
        those = (delivery, *self.tries[delivery["id"]])
        return {one["permitted_us"] for one in those if one["permitted_us"] is not None}

    @cached_property
    def leases(self) -> dict[str, list[Tenure]]:
        """The leases on each contact in the store's order, with the end that is certain of each."""
        ends: dict[str, int] = {}
        for call in self.calls:
            if call.act in ("acquire", "renew") and call.answer and "expiresAt" in call.answer:
                lease = call.answer.get("id") or call.body["lease"]
                ends[lease] = max(ends.get(lease, 0), moment(call.answer["expiresAt"]))
        found: defaultdict[str, list[Tenure]] = defaultdict(list)
        for event in self.events:
            mine = found[event["contact"]] if event["name"].startswith("lease.") else []
            if event["name"] == "lease.acquired":
                if mine and "override" in event["data"]:
                    mine[-1] = replace(mine[-1], end=min(mine[-1].end, event["at_us"]))
                lease, at = event["data"]["lease"], event["at_us"]
                mine.append(Tenure(lease, event["data"]["token"], event["actor"], at, max(at, ends.get(lease, at))))
            elif event["name"] == "lease.released":
                for index, one in enumerate(mine):
                    if one.lease == event["data"]["lease"]:
                        mine[index] = replace(one, end=min(one.end, event["at_us"]))
        return found

    def others(self, delivery: Row) -> list[Tenure]:
        """The leases on a delivery's contact that another agent has had, where they bind it at all."""
        send = self.sends[delivery["send_id"]]
        if not self.leases_bind or send["kind"] == "transactional" or delivery["internal"]:
            return []
        return [tenure for tenure in self.leases.get(delivery["contact"], []) if tenure.agent != send["agent"]]


Check = Callable[[History], Iterator[str]]


def _grouped(rows: Sequence[Row], column: str) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found
