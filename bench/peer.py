"""Figures of the public hermes-agent 0.19.0, to stand beside ours; data, nothing is measured here.

Source: ``peer_hermes_agent_0.19.md`` of the bench kit, taken with the kit's own scripts on two
shared cores, chat completions, without a cap on concurrent runs where there are more than ten.
"""

SOURCE = "hermes-agent 0.19.0, quoted from peer_hermes_agent_0.19.md of the bench kit"

TTFT_P50 = {1: 282.0, 10: 1050.0, 50: 13741.0, 100: 31239.0}
TTFT_P95 = {1: 390.0, 10: 2455.0, 50: 15437.0, 100: 35309.0}
RELAY_P50 = {1: 1.2, 10: 412.0, 50: 5106.0, 100: 12809.0}
RELAY_P95 = {1: 5.7, 10: 1797.0, 50: 10565.0, 100: 28916.0}
STREAMS_PER_SECOND = {1: 1.5, 10: 4.2, 50: 3.2, 100: 2.9}
CPU_PER_STREAM = {1: 218.0, 10: 248.0, 50: 221.0, 100: 225.0}
TURNS_PER_SECOND = {1: 4.4, 10: 4.3, 50: 3.6}
CPU_PER_TURN = {1: 190.0, 10: 219.0, 50: 222.0}
LONG_CHUNKS_PER_SECOND = 4195.0
MEMORY_IDLE = 94.0
MEMORY_AFTER_100_STREAMS = 272.0
COLD_START = 0.9
"""The best of nine starts."""
FIRST_TURN = 2700.0
"""The best; the second turn is a warm one, about 220 ms."""
SECOND_TURN = 220.0
