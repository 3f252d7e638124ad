"""What the tools of BFCL's eight back ends read and write, as whoever offers them would declare it.

Written from the back ends' source. A tool that draws a random number or a running number changes what the next one
gets, so it writes `...:ids` or `...:sensors`: two of them must keep their order, or their results swap.
"""

from __future__ import annotations

from toolplan.tools.declaration import Facts

__all__ = ["EFFECTS"]

_PURE = Facts(pure=True)


def _file_reader(*names: str) -> Facts:
    return Facts(reads=["fs:cwd", "fs:tree:names", *(f"fs:tree:text:{{{name}}}" for name in names)])


_TREE_CHANGE = Facts(reads="fs:cwd", writes="fs:tree")

_FILES = {
    "pwd": Facts(reads="fs:cwd"),
    "cd": Facts(reads="fs:tree:names", writes="fs:cwd"),
    "ls": Facts(reads=["fs:cwd", "fs:tree:names"]),
    "find": Facts(reads=["fs:cwd", "fs:tree:names"]),
    "du": Facts(reads=["fs:cwd", "fs:tree"]),
    **{name: _file_reader("file_name") for name in ("cat", "wc", "sort", "grep", "tail")},
    "diff": _file_reader("file_name1", "file_name2"),
    "echo": Facts(reads=["fs:cwd", "fs:tree:names"], writes="fs:tree:text:{file_name}"),
    **dict.fromkeys(("touch", "mkdir", "rm", "rmdir", "mv", "cp"), _TREE_CHANGE),
}

_MATHS: dict[str, Facts] = dict.fromkeys(
    (
        *("add", "subtract", "multiply", "divide", "power", "square_root", "logarithm", "percentage"),
        *("absolute_value", "round_number", "min_value", "max_value", "sum_values", "mean", "standard_deviation"),
        *("si_unit_conversion", "imperial_si_conversion"),
    ),
    _PURE,
)

_MESSAGES = {
    "list_users": Facts(reads="messages:users"),
    "get_user_id": Facts(reads="messages:users:{user}"),
    "message_login": Facts(reads="messages:users", writes="messages:session"),
    "message_get_login_status": Facts(reads="messages:session"),
    "send_message": Facts(reads=["messages:session", "messages:users"], writes="messages:inbox"),
    "delete_message": Facts(reads="messages:session", writes="messages:inbox"),
    "view_messages_sent": Facts(reads=["messages:session", "messages:inbox"]),
    "search_messages": Facts(reads=["messages:session", "messages:inbox"]),
    "get_message_stats": Facts(reads=["messages:session", "messages:inbox"]),
    "add_contact": Facts(writes="messages:users"),
}

_TWEETS = {
    "authenticate_twitter": Facts(writes="twitter:session"),
    "posting_get_login_status": Facts(reads="twitter:session"),
    "post_tweet": Facts(reads="twitter:session", writes="twitter:tweets"),
    "retweet": Facts(reads=["twitter:session", "twitter:tweets:{tweet_id}"], writes="twitter:retweets"),
    "comment": Facts(reads=["twitter:session", "twitter:tweets:{tweet_id}"], writes="twitter:comments:{tweet_id}"),
    "mention": Facts(writes="twitter:tweets:{tweet_id}"),
    "follow_user": Facts(reads="twitter:session", writes="twitter:following"),
    "unfollow_user": Facts(reads="twitter:session", writes="twitter:following"),
    "list_all_following": Facts(reads=["twitter:session", "twitter:following"]),
    "get_tweet": Facts(reads="twitter:tweets:{tweet_id}"),
    "get_user_tweets": Facts(reads="twitter:tweets"),
    "search_tweets": Facts(reads="twitter:tweets"),
    "get_tweet_comments": Facts(reads=["twitter:tweets:{tweet_id}", "twitter:comments:{tweet_id}"]),
    "get_user_stats": Facts(reads=["twitter:tweets", "twitter:retweets", "twitter:following"]),
}

_TICKETS = {
    "ticket_login": Facts(writes="tickets:session"),
    "logout": Facts(writes="tickets:session"),
    "ticket_get_login_status": Facts(reads="tickets:session"),
    "create_ticket": Facts(reads="tickets:session", writes="tickets:queue"),
    "get_ticket": Facts(reads="tickets:queue:{ticket_id}"),
    "get_user_tickets": Facts(reads=["tickets:session", "tickets:queue"]),
    **{name: Facts(writes="tickets:queue:{ticket_id}") for name in ("close_ticket", "resolve_ticket", "edit_ticket")},
}

_TRADING = {
    "trading_login": Facts(writes="trading:session"),
    "trading_logout": Facts(writes="trading:session"),
    "trading_get_login_status": Facts(reads="trading:session"),
    "get_current_time": _PURE,
    "get_symbol_by_name": _PURE,
    "get_available_stocks": _PURE,
    "get_stock_info": Facts(reads="trading:stocks:{symbol}"),
    "filter_stocks_by_price": Facts(reads="trading:stocks:{stocks}"),
    "notify_price_change": Facts(reads="trading:stocks:{stocks}"),
    "place_order": Facts(
        reads=["trading:session", "trading:stocks:{symbol}", "trading:account"], writes="trading:orders"
    ),
    "get_order_details": Facts(reads="trading:orders:{order_id}"),
    "cancel_order": Facts(writes="trading:orders:{order_id}"),
    "get_order_history": Facts(reads=["trading:session", "trading:orders"]),
    "get_account_info": Facts(reads=["trading:session", "trading:account"]),
    "fund_account": Facts(reads="trading:session", writes="trading:account"),
    "withdraw_funds": Facts(reads="trading:session", writes="trading:account"),
    "get_transaction_history": Facts(reads=["trading:session", "trading:account"]),
    "add_to_watchlist": Facts(reads="trading:stocks:{stock}", writes="trading:watchlist"),
    "remove_stock_from_watchlist": Facts(reads="trading:session", writes="trading:watchlist"),
    "get_watchlist": Facts(reads=["trading:session", "trading:watchlist"]),
}

_TRAVEL = {
    "authenticate_travel": Facts(writes=["travel:session", "travel:ids"]),
    "travel_get_login_status": Facts(reads="travel:session"),
    "verify_traveler_information": Facts(reads="travel:session"),
    "get_budget_fiscal_year": _PURE,
    "list_all_airports": _PURE,
    "get_nearest_airport_by_city": _PURE,
    "compute_exchange_rate": _PURE,
    "get_flight_cost": Facts(reads="travel:quotes"),
    "set_budget_limit": Facts(reads="travel:session", writes="travel:budget"),
    "register_credit_card": Facts(reads="travel:session", writes=["travel:cards", "travel:ids"]),
    "get_credit_card_balance": Facts(reads=["travel:session", "travel:cards:{card_id}"]),
    "get_all_credit_cards": Facts(reads="travel:cards"),
    "book_flight": Facts(
        reads=["travel:session", "travel:budget"],
        writes=["travel:cards:{card_id}", "travel:bookings", "travel:quotes", "travel:ids"],
    ),
    "cancel_booking": Facts(reads="travel:session", writes=["travel:bookings:{booking_id}", "travel:cards"]),
    "retrieve_invoice": Facts(reads=["travel:session", "travel:bookings:{booking_id}"]),
    "get_booking_history": Facts(reads=["travel:session", "travel:bookings"]),
    "purchase_insurance": Facts(
        reads=["travel:session", "travel:budget", "travel:bookings:{booking_id}"],
        writes=["travel:cards:{card_id}", "travel:ids"],
    ),
    "contact_customer_support": Facts(reads="travel:bookings:{booking_id}", writes="travel:support"),
}

_VEHICLE = {
    "startEngine": Facts(reads=["vehicle:doors", "vehicle:brakePedal", "vehicle:fuel"], writes="vehicle:engine"),
    "fillFuelTank": Facts(writes="vehicle:fuel"),
    "lockDoors": Facts(writes="vehicle:doors"),
    "adjustClimateControl": Facts(writes="vehicle:climate"),
    "setHeadlights": Facts(writes="vehicle:headlights"),
    "displayCarStatus": Facts(reads="vehicle:{option}"),
    "activateParkingBrake": Facts(writes="vehicle:parkingBrake"),
    "pressBrakePedal": Facts(writes="vehicle:brakePedal"),
    "releaseBrakePedal": Facts(writes="vehicle:brakePedal"),
    "setCruiseControl": Facts(reads="vehicle:engine", writes="vehicle:cruise"),
    "set_navigation": Facts(writes="vehicle:navigation"),
    "check_tire_pressure": Facts(reads="vehicle:tires"),
    "estimate_drive_feasibility_by_mileage": Facts(reads="vehicle:fuel"),
    "get_current_speed": Facts(writes="vehicle:sensors"),
    "get_outside_temperature_from_google": Facts(writes="vehicle:sensors"),
    "get_outside_temperature_from_weather_com": _PURE,
    "find_nearest_tire_shop": _PURE,
    "estimate_distance": _PURE,
    "get_zipcode_based_on_city": _PURE,
    "liter_to_gallon": _PURE,
    "gallon_to_liter": _PURE,
    "display_log": _PURE,
}

EFFECTS: dict[str, dict[str, Facts]] = {
    "GorillaFileSystem": _FILES,
    "MathAPI": _MATHS,
    "MessageAPI": _MESSAGES,
    "TwitterAPI": _TWEETS,
    "TicketAPI": _TICKETS,
    "TradingBot": _TRADING,
    "TravelAPI": _TRAVEL,
    "VehicleControlAPI": _VEHICLE,
}
"""Back end: tool: its declaration."""
