"""Names of settings as data: those of absent parts, those that people write for another one.

``key_check`` makes warnings of them.
"""

_PARTS = """
    _config_version acp agents api_server approvals attachments auxiliary bedrock billing browser
    checkpoints claude_code clarify code_execution command_allowlist command_denylist compression
    computer_use context credential_pool_strategies cron curator dashboard database debug
    delegation desktop discord display email feishu file_read_max_chars goals
    group_sessions_per_user
    hermes_cloud homeassistant honcho hooks hooks_auto_accept human_delay image_gen kanban lm_studio
    logging lsp managed matrix mattermost max_concurrent_sessions mcp mcp_servers memory moa
    model_aliases model_catalog model_switch nemo_relay network nous onboarding openrouter
    openrouter_routing paste_collapse_threshold personalities plugins portal prefill_messages_file
    privacy prompt_caching provider_routing proxy quick_commands quotas rate_limits redaction
    relay runtime secrets security session session_reset signal skills skin slack
    smart_model_routing sms spotify stt streaming subagents telegram telemetry tier
    thread_sessions_per_user timeouts timezone tool_loop_guardrails
    tool_output tool_search tools toolsets tts ui
    unauthorized_dm_behavior updates version video_gen vision voice wecom weixin web whatsapp
    worktree worktree_sync x_search yuanbao
"""

ABSENT_PARTS = frozenset(_PARTS.split())
"""Sections of the public agent's settings that belong to parts this version does not have."""

_KEYS = """
    agent.adaptive_thinking agent.api_max_tokens agent.background_review agent.coding_context
    agent.coding_instructions agent.environment_hint agent.environment_probe
    agent.final_response_markdown
    agent.gateway_notify_interval agent.gateway_timeout agent.gateway_timeout_warning
    agent.image_input_mode agent.max_iterations_warning agent.max_tool_result_chars
    agent.parallel_tool_call_guidance agent.personalities agent.reasoning_overrides
    agent.save_trajectories agent.service_tier agent.session_idle_timeout
    agent.task_completion_guidance agent.tool_use_enforcement agent.verbose
    agent.verify_on_stop
    gateway.busy_input_mode gateway.default_platform gateway.media_delivery_allow_dirs
    gateway.strict gateway.trust_recent_files gateway.trust_recent_files_seconds
    model.auth_mode model.entra model.key_cmd model.ollama_num_ctx model.openai_runtime
    model.session_affinity_header
    model.streaming
    sessions.auto_archive sessions.auto_prune sessions.min_interval_hours sessions.retention_days
    sessions.vacuum_after_prune sessions.write_json_snapshots
"""

ABSENT_KEYS = frozenset(_KEYS.split())
"""Single keys of such parts inside sections that this version has."""

ABSENT_INSIDE = ("terminal.", "platforms.", "providers.", "fallback_providers.")
"""Sections where every other key of the public agent is one for another part."""

MEANT = {
    "model.timeout": "model.stall_timeout",
    "model.stream_timeout": "model.stall_timeout",
    "model.request_timeout": "model.stall_timeout",
    "model.read_timeout": "model.stall_timeout",
    "model.api_timeout": "model.whole_answer_timeout",
    "model.max_context": "model.context_length",
    "model.context_window": "model.context_length",
    "model.max_completion_tokens": "model.max_tokens",
    "model.endpoint": "model.base_url",
    "model.key": "model.api_key",
    "model.effort": "model.reasoning_effort",
    "agent.timeout": "agent.turn_timeout",
    "agent.stream_timeout": "agent.stream_stale_timeout",
    "agent.request_timeout": "agent.stream_stale_timeout",
    "agent.max_iterations": "agent.max_turns",
    "agent.max_steps": "agent.max_turns",
    "agent.retries": "agent.api_max_retries",
    "gateway.max_concurrent_runs": "gateway.api_server.max_concurrent_runs",
    "platforms.api_server.host": "platforms.api_server.extra.host",
    "platforms.api_server.port": "platforms.api_server.extra.port",
    "platforms.api_server.key": "platforms.api_server.extra.key",
    "platforms.api_server.cors_origins": "platforms.api_server.extra.cors_origins",
    "platforms.api_server.model_name": "platforms.api_server.extra.model_name",
    "platforms.api_server.extra.api_key": "platforms.api_server.extra.key",
    "timeout": "model.stall_timeout",
    "stream_timeout": "model.stall_timeout",
    "request_timeout": "model.stall_timeout",
    "api_key": "model.api_key",
    "base_url": "model.base_url",
    "provider": "model.provider",
    "max_turns": "agent.max_turns",
    "port": "platforms.api_server.extra.port",
    "host": "platforms.api_server.extra.host",
}
"""Keys that people write, and the one that they mean."""
