"""What every surface of the gateway has in common.

Delivery of messages that the agent starts by itself is a surface's own concern.
"""

from dataclasses import dataclass

from hermes.gateway.config import Platform, PlatformConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Whether a message was delivered, and why not."""

    success: bool
    error: str = ""


class PlatformAdapter:
    """A surface: it is connected once, serves, and is disconnected once.

    A fatal error says why it does not serve, and whether trying again can help.
    """

    def __init__(self, config: PlatformConfig, platform: Platform) -> None:
        self.config = config
        self.platform = platform
        self.fatal_error_code = ""
        self.fatal_error_message = ""
        self.fatal_error_retryable = False

    @property
    def has_fatal_error(self) -> bool:
        """Whether the surface has given up."""
        return bool(self.fatal_error_code)

    def set_fatal_error(self, code: str, message: str, *, retryable: bool) -> None:
        """Say why the surface does not serve."""
        self.fatal_error_code = code
        self.fatal_error_message = message
        self.fatal_error_retryable = retryable
