"""Every error that Hermes raises on purpose, each with a stable code and a text safe to show.

Messages never hold a key, a header or a path of the server; who builds one from foreign text
redacts it first.
"""


class HermesError(Exception):
    """Base of all; ``code`` is stable and for programs, the message is for people."""

    code = "internal_error"

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        if code:
            self.code = code

    @property
    def message(self) -> str:
        """The text to show."""
        return str(self.args[0])


class ProviderError(HermesError):
    """A model endpoint did not give an answer.

    ``retryable``: the same request may succeed at the same endpoint. ``fail_over``: another
    endpoint may succeed where this one will not.
    """

    code = "provider_error"
    retryable = False
    fail_over = True


class ProviderConnectionError(ProviderError):
    """The endpoint could not be reached or dropped the connection."""

    code = "provider_connection"
    retryable = True


class ProviderTimeoutError(ProviderError):
    """The endpoint was silent for longer than its limit (``provider_timeout``) or stopped sending
    content (``provider_stalled``).
    """

    code = "provider_timeout"
    retryable = True


class ProviderStatusError(ProviderError):
    """The endpoint answered with an error, as an HTTP status or as an event in the stream.

    ``status`` is the HTTP status or its nearest equivalent; ``retry_after`` is in seconds.
    ``parameter`` names the request parameter that was refused, where the answer says so.
    Codes: ``authentication``, ``permission``, ``not_found``, ``rate_limited``,
    ``quota_exhausted``, ``overloaded``, ``context_length_exceeded``, ``unsupported_parameter``,
    ``invalid_signature``, ``content_filter``, ``provider_request`` (other 4xx),
    ``provider_server`` (other 5xx).
    """

    code = "provider_server"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
        parameter: str = "",
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.parameter = parameter


class ProviderProtocolError(ProviderError):
    """The endpoint sent bytes that are not its protocol: broken JSON, an event too large, a cut
    stream (``provider_incomplete``).
    """

    code = "provider_protocol"
    retryable = True


class EmptyAnswerError(ProviderError):
    """The model ended without a word and without a tool call."""

    code = "empty_answer"
    retryable = True


class LocalModelError(ProviderError):
    """The embedded model cannot answer; the message says why and names the next step.

    Codes: ``weights_unknown``, ``weights_missing``, ``weights_unreachable``, ``weights_mismatch``,
    ``weights_unwritable``, ``disk_full``, ``runtime_missing``, ``library_missing``,
    ``cpu_unsupported``, ``memory_low``, ``local_model_failed`` (its process ended or did not
    start), ``local_model_closed``.
    """

    code = "local_model_failed"


class RequestError(HermesError):
    """A client's request cannot be served as it stands; ``param`` names the place in its body."""

    code = "invalid_request"

    def __init__(self, message: str, *, code: str = "", param: str = "", status: int = 400) -> None:
        super().__init__(message, code=code)
        self.param = param
        self.status = status


class SessionError(HermesError):
    """A session does not exist (``session_not_found``), exists already or cannot be stored."""

    code = "session_error"


class ToolboxError(HermesError):
    """A toolbox cannot be built, e.g. two tools of one name, or an approval cannot be answered."""

    code = "toolbox_error"


class ConfigError(HermesError):
    """A setting is missing or wrong; the message says which and what to do."""

    code = "config_error"


class TurnError(HermesError):
    """A turn ended without an answer for a reason of its own: ``budget_steps``, ``budget_tokens``,
    ``budget_time``, ``truncated_tool_call``, ``internal_error``.
    """

    code = "turn_failed"


class TurnCancelled(HermesError):  # noqa: N818 - a fixed name of the design
    """The turn was stopped from outside; what had been delivered stays valid."""

    code = "cancelled"
