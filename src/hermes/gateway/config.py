"""Which surfaces the gateway runs, and with what settings.

Reading files and the environment is ``hermes_cli.config``'s; this is its view by platform.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hermes.hermes_cli import config
from hermes.hermes_cli.settings import Settings

_SHIPPED: dict[str, Any] = {"tool_progress": "opt_in"}
"""What a server as shipped does where an adapter built by hand does otherwise."""


class Platform(StrEnum):
    """A surface of the gateway."""

    API_SERVER = "api_server"


@dataclass
class PlatformConfig:
    """A surface's settings; ``extra`` holds what only that surface knows."""

    enabled: bool = False
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class GatewayConfig:
    """All surfaces by name."""

    platforms: dict[Platform, PlatformConfig] = field(
        default_factory=dict[Platform, PlatformConfig]
    )

    def get_connected_platforms(self) -> list[Platform]:
        """Return the surfaces that can serve: enabled, and with a key where one is needed."""
        return [
            platform
            for platform, settings in self.platforms.items()
            if settings.enabled and settings.extra.get("key")
        ]


def load_gateway_config() -> GatewayConfig:
    """Read the gateway's settings from the home folder and the environment.

    Raises:
        ConfigError: the settings cannot be read.
    """
    return gateway_config(config.load_settings().settings)


def gateway_config(settings: Settings) -> GatewayConfig:
    """Return the gateway's part of ``settings``."""
    platform = settings.platforms.api_server
    extra = _SHIPPED | platform.extra.model_dump(exclude_none=True)
    return GatewayConfig(
        platforms={Platform.API_SERVER: PlatformConfig(enabled=platform.enabled, extra=extra)}
    )
