import pytest
from pydantic_ai import exceptions as library

from toolplan.models.facts import PROVIDERS
from toolplan.models.failures import Attempt, Target, UnusableReply, explain, scrub, without_password

KEY = "hunter2-hunter2"
TARGET = Target(PROVIDERS["openai"], "m1", "http://user:pass@localhost:1/v1?key=abc", KEY)
WITH_SCHEMA = Attempt(streamed=False, carried=True)
PLAIN = Attempt(streamed=False, carried=False)


def http(status, body):
    return library.ModelHTTPError(status, "m1", body)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid schema for response_format 'submit_plan': In context=(), 'additionalProperties' is required"),
        (400, "This response_format type is unavailable now"),
        (400, "tool_choice is not supported in thinking mode"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, "Failed to initialize samplers: failed to parse grammar"),
        (404, "No endpoints found that support tool use"),
        (422, "json_schema is not supported"),
        (500, "tools param requires --jinja flag"),
        (500, "Unsupported param: tools"),
    ],
)
def test_refusals_of_a_schema_as_real_servers_word_them(status, message):
    error = http(status, {"error": {"message": message}})
    assert explain(error, TARGET, WITH_SCHEMA).kind == "refused"
    assert explain(error, TARGET, PLAIN).kind != "refused"


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "This model's maximum context length is 8192 tokens (1000 in the tools)", "final"),
        (400, "Your credit balance is too low to use tools", "final"),
        (400, "temperature must be below 2", "final"),
        (401, "tools are not for you", "final"),
        (429, "too many tools calls", "transient"),
        (500, "internal error in tool server", "transient"),
        (404, "The model `schema-bot` does not exist", "final"),
    ],
)
def test_what_only_sounds_like_a_refused_schema(status, message, kind):
    target = Target(PROVIDERS["openai"], "schema-bot", "http://localhost/v1")
    assert explain(http(status, {"error": {"message": message}}), target, WITH_SCHEMA).kind == kind


@pytest.mark.parametrize(
    "body",
    [
        {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]},
        {"error": "streaming is not supported"},
    ],
)
def test_refusals_to_stream(body):
    streamed = Attempt(streamed=True, carried=True)
    assert explain(http(422, body), TARGET, streamed).kind == "unstreamable"
    assert explain(http(422, body), TARGET, PLAIN).kind == "final"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "inner"}}, "inner"),
        ({"error": "plain"}, "plain"),
        ({"message": "flat"}, "flat"),
        ({"detail": {"message": "deep"}}, "deep"),
        ({"other": 1}, '{"other": 1}'),
        ("two\n  lines", "two lines"),
        ("<html><body><h1>502</h1> Bad   Gateway</body></html>", "502 Bad Gateway"),
        ("x" * 1000, "x" * 300 + "…"),
    ],
)
def test_the_words_of_an_error_body(body, words):
    assert str(explain(http(418, body), TARGET, PLAIN).error).endswith(f"(HTTP 418): {words}")


def test_an_error_without_a_body():
    assert str(explain(http(418, None), TARGET, PLAIN).error) == "`openai:m1` refused the request (HTTP 418)"


def test_an_error_says_who_and_what():
    error = explain(http(400, "no"), TARGET, PLAIN).error
    assert (error.provider, error.model, error.status) == ("openai", "m1", 400)


def test_the_key_goes_out_of_every_text():
    for error in (
        http(400, {"error": {"message": f"bad key {KEY}"}}),
        library.ModelConnectionError("m1", f"reset {KEY}"),
        library.UserError(f"what {KEY}"),
        library.UnexpectedModelBehavior(f"what {KEY}"),
        ValueError(KEY),
        UnusableReply(f"declined: {KEY}"),
    ):
        text = str(explain(error, TARGET, PLAIN).error)
        assert KEY not in text
        assert "[removed]" in text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("sk-proj-abcdef123456", "abcdef"),
        ("sk-ant-api03-abc_def-123", "abc_def"),
        ("gsk_abcdef123456", "abcdef"),
        ("AIzaSyA1234567890", "123456"),
        ("hf_abcdefgh", "abcdefgh"),
        ("sk-abcd****wxyz", "wxyz"),
        ("Bearer abc.def.ghi", "abc"),
        ("api_key=abcdefgh", "abcdefgh"),
        ("https://x.org/v1?key=1&api-key=abcdefgh&z=2", "abcdefgh"),
        ('"x-goog-api-key": "abcdefgh"', "abcdefgh"),
    ],
)
def test_what_looks_like_a_key_is_removed(text, secret):
    clean = scrub(f"before {text} after")
    assert secret not in clean
    assert "[removed]" in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")


@pytest.mark.parametrize("text", ["ask-me-anything", "task-runner-12345", "the desk-top model", "risk_assessment_x"])
def test_ordinary_words_stay(text):
    assert scrub(text) == text


def test_addresses_are_shown_without_secrets():
    assert without_password(TARGET.base_url) == "http://localhost:1/v1"
    assert repr(TARGET) == "Target(openai:m1 at http://localhost:1/v1)"


def test_connections():
    refused = library.ModelConnectionError("m1", "Connection error.", phase="connect")
    failure = explain(refused, Target(PROVIDERS["ollama"], "q", "http://localhost:11434/v1"), PLAIN, attempts=3)
    assert failure.kind == "transient"
    assert str(failure.error) == (
        "could not reach `ollama:q` at http://localhost:11434/v1 after 3 attempts: Connection error.;"
        " is the server running? start it with `ollama serve`"
    )
    lost = library.ModelConnectionError("m1", "reset", phase="read")
    assert str(explain(lost, TARGET, Attempt(True, False, arrived=12)).error) == (
        "the reply of `openai:m1` broke off after 12 characters: reset"
    )


def test_a_slow_answer_is_final_but_a_slow_connection_is_not():
    assert explain(TimeoutError(), TARGET, PLAIN).kind == "final"
    assert explain(library.ModelTimeoutError("m1", "slow", phase="read"), TARGET, PLAIN).kind == "final"
    assert explain(library.ModelTimeoutError("m1", "slow", phase="connect"), TARGET, PLAIN).kind == "transient"


@pytest.mark.parametrize(
    "message",
    ["API key not valid. Please pass a valid API key.", "API key expired.", "Invalid API Key", "api_key invalid"],
)
@pytest.mark.parametrize("attempt", [PLAIN, WITH_SCHEMA])
def test_a_key_that_is_refused_with_status_400(message, attempt):
    failure = explain(http(400, {"error": {"message": message, "status": "INVALID_ARGUMENT"}}), TARGET, attempt)
    assert (failure.kind, failure.error.reason) == ("final", "key")
