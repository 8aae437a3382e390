"""What holds of the settings of send, agent, mailbox and tenant, as a table; which change needs a person."""

import pytest

from gateway.core.humanizer import USUAL, Effective, Setting, effective, loosened, setting

ON, OFF, UNSET = True, False, None


@pytest.mark.parametrize(
    ("send", "agent", "mailbox", "tenant", "holds"),
    [
        (UNSET, UNSET, UNSET, UNSET, False),
        (UNSET, UNSET, UNSET, ON, True),
        (UNSET, UNSET, UNSET, OFF, False),
        (UNSET, ON, UNSET, UNSET, True),
        (UNSET, ON, UNSET, OFF, True),
        (UNSET, OFF, UNSET, ON, False),
        (ON, UNSET, UNSET, UNSET, True),
        (ON, UNSET, UNSET, OFF, True),
        (ON, OFF, UNSET, ON, False),
        (OFF, ON, UNSET, ON, False),
        (OFF, UNSET, UNSET, ON, False),
        (UNSET, ON, OFF, ON, False),
        (ON, UNSET, OFF, UNSET, False),
        (UNSET, UNSET, ON, UNSET, False),
        (ON, ON, ON, ON, True),
    ],
)
def test_the_closest_setting_holds_and_an_explicit_off_wins(
    send: bool | None, agent: bool | None, mailbox: bool | None, tenant: bool | None, *, holds: bool
) -> None:
    found = effective(send=Setting(send), agent=Setting(agent), mailbox=Setting(mailbox), tenant=Setting(tenant))

    assert found.enabled is holds


@pytest.mark.parametrize(
    ("send", "agent", "mailbox", "tenant", "style"),
    [
        (None, None, None, None, USUAL),
        (None, None, None, "casual", "casual"),
        (None, None, "friendly", "casual", "friendly"),
        (None, "casual", "friendly", "friendly", "casual"),
        ("friendly", "casual", "casual", "casual", "friendly"),
    ],
)
def test_the_closest_style_holds(
    send: str | None, agent: str | None, mailbox: str | None, tenant: str | None, style: str
) -> None:
    found = effective(
        send=Setting(style=send),
        agent=Setting(style=agent),
        mailbox=Setting(style=mailbox),
        tenant=Setting(style=tenant),
    )

    assert found.style == style


@pytest.mark.parametrize(
    ("old", "new", "tenant", "names"),
    [
        (Setting(), Setting(ON), Setting(), ["enabled"]),
        (Setting(OFF), Setting(ON), Setting(ON), ["enabled"]),
        (Setting(), Setting(ON), Setting(ON), ["enabled"]),
        (Setting(ON), Setting(OFF), Setting(), []),
        (Setting(ON), Setting(ON), Setting(), []),
        (Setting(ON), Setting(ON, "casual"), Setting(), ["style"]),
        (Setting(ON), Setting(ON, USUAL), Setting(), []),
        (Setting(OFF), Setting(OFF, "casual"), Setting(ON), []),
        (Setting(), Setting(None, "casual"), Setting(ON), ["style"]),
        (Setting(), Setting(ON, "casual"), Setting(ON), ["enabled", "style"]),
        (Setting(ON), Setting(OFF, "casual"), Setting(), []),
        (Setting(OFF), Setting(ON, "casual"), Setting(), ["enabled"]),
    ],
)
def test_a_person_turns_it_on_and_changes_the_style_while_it_is_on(
    old: Setting, new: Setting, tenant: Setting, names: list[str]
) -> None:
    before, after = (effective(agent=one, tenant=tenant) for one in (old, new))

    assert loosened(before, after, old, new) == names


def test_stored_values_are_read_by_their_prefix() -> None:
    assert setting({"humanizer_enabled": True, "style": "casual"}, "humanizer_") == Setting(ON, None)
    assert setting({"enabled": False, "style": "casual"}) == Setting(OFF, "casual")
    assert effective() == Effective(enabled=False, style=USUAL)
