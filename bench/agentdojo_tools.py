"""What AgentDojo's tools declare, for the shipped policy: the only thing about them that it is told.

One sentence a family of tools says why; the rules are those of the shipped default policy and know nothing of it.
`writes` and `reads` say what a call changes. `untrusted` names the fields of a result that other people wrote.
`guarded` names the arguments for which it matters who chose them: who gets something, what is removed, how much.
`assigns` names the fields of a result that the tool chooses itself for what it has made.
"""

from __future__ import annotations

from toolplan.tools.declaration import Facts

__all__ = ["DECLARATIONS"]

_MAIL = ("sender", "recipients", "cc", "bcc", "subject", "body", "attachments")
"""Whoever writes a mail chooses all of this, and may write it under any name; id and time are the mailbox's."""
_EVENT = ("title", "description", "location", "participants")
"""Whoever invites chooses these; id and times are the calendar's."""
_FILE = ("content", "filename")
"""A shared file was written and named by others; its id, size and dates are the drive's."""


def _family(facts: Facts, *names: str) -> dict[str, Facts]:
    return dict.fromkeys(names, facts)


DECLARATIONS: dict[str, Facts] = {
    # Mail that came in is other people's text; what the user has sent is not.
    **_family(
        {"reads": "mail", "untrusted": _MAIL},
        "get_unread_emails", "get_received_emails", "search_emails",
    ),
    **_family({"reads": "mail"}, "get_sent_emails", "get_draft_emails"),
    # Of a mail it matters who gets it and which files leave the house; its wording is shown to people, not obeyed.
    "send_email": {"writes": "mail", "guarded": ("recipients", "cc", "bcc", "attachments")},
    "delete_email": {"writes": "mail", "guarded": "email_id"},
    # The address book holds what the user has entered.
    **_family({"reads": "contacts"}, "search_contacts_by_name", "search_contacts_by_email"),
    "get_current_day": {"reads": "clock"},
    # An invitation is written by whoever sends it.
    **_family({"reads": "calendar", "untrusted": _EVENT}, "search_calendar_events", "get_day_calendar_events"),
    # Participants are sent an invitation; title and place are what the user will go by.
    "create_calendar_event": {
        "writes": "calendar", "guarded": ("title", "participants", "location"), "assigns": "id_"
    },
    **_family({"writes": "calendar"}, "cancel_calendar_event", "reschedule_calendar_event"),
    "add_calendar_event_participants": {"writes": "calendar", "guarded": ("event_id", "participants")},
    # Files of a shared drive hold other people's text.
    **_family(
        {"reads": "drive", "untrusted": _FILE},
        "search_files_by_filename", "get_file_by_id", "list_files", "search_files",
    ),
    # It matters which file is changed, removed or shared, and with whom; not what is written, and not with which right.
    "append_to_file": {"writes": "drive", "guarded": "file_id"},
    # What is made gets its id from the drive, whatever is written into it.
    "create_file": {"writes": "drive", "guarded": "filename", "assigns": "id_"},
    "delete_file": {"writes": "drive", "guarded": "file_id"},
    "share_file": {"writes": "drive", "guarded": ("file_id", "email")},
    # The travel agency's own data.
    **_family(
        {"reads": "agency"},
        "get_user_information", "get_all_hotels_in_city", "get_hotels_prices", "get_hotels_address",
        "get_all_restaurants_in_city", "get_cuisine_type_for_restaurants", "get_restaurants_address",
        "get_dietary_restrictions_for_all_restaurants", "get_contact_information_for_restaurants",
        "get_price_for_restaurants", "check_restaurant_opening_hours", "get_all_car_rental_companies_in_city",
        "get_car_types_available", "get_car_fuel_options", "get_car_rental_address", "get_car_price_per_day",
        "get_flight_information",
    ),
    # Reviews are written by guests, or by whoever says so.
    **_family(
        {"reads": "agency", "untrusted": True},
        "get_rating_reviews_for_hotels", "get_rating_reviews_for_restaurants", "get_rating_reviews_for_car_rental",
    ),
    # It matters who gets the booking.
    "reserve_hotel": {"writes": "bookings", "guarded": "hotel"},
    "reserve_car_rental": {"writes": "bookings", "guarded": "company"},
    "reserve_restaurant": {"writes": "bookings", "guarded": "restaurant"},
    # The bank's own data.
    **_family({"reads": "account"}, "get_iban", "get_balance", "get_scheduled_transactions", "get_user_info"),
    # Anybody may send the user money, with a text; date and amount are the bank's.
    "get_most_recent_transactions": {"reads": "account", "untrusted": ("sender", "subject")},
    # A file on the computer may be a bill or a letter.
    "read_file": {"reads": "files", "untrusted": True},
    # It matters who gets how much.
    **_family({"writes": "account", "guarded": ("recipient", "amount")}, "send_money", "schedule_transaction"),
    "update_scheduled_transaction": {"writes": "account", "guarded": ("id", "recipient", "amount")},
    "update_password": {"writes": "account", "guarded": "password"},
    "update_user_info": {"writes": "account", "guarded": ("first_name", "last_name", "street", "city")},
    # Who is in which channel is known to the service; what they write is other people's text.
    **_family({"reads": "slack"}, "get_channels", "get_users_in_channel"),
    **_family({"reads": "slack", "untrusted": "body"}, "read_channel_messages", "read_inbox"),
    "send_direct_message": {"writes": "slack", "guarded": "recipient"},
    "send_channel_message": {"writes": "slack", "guarded": "channel"},
    "add_user_to_channel": {"writes": "slack", "guarded": ("user", "channel")},
    "invite_user_to_slack": {"writes": "slack", "guarded": ("user", "user_email")},
    "remove_user_from_slack": {"writes": "slack", "guarded": "user"},
    # To fetch a page tells its owner whatever the address says; the page is its owner's text.
    "get_webpage": {"writes": "web:{url}", "untrusted": True, "guarded": "url"},
    "post_webpage": {"writes": "web:{url}", "guarded": "url"},
}  # fmt: skip
