"""What one turn may spend: model calls, tokens, seconds.

Limits of a single model call or tool belong to the provider and the toolbox.
"""

from dataclasses import dataclass

from hermes.errors import TurnError
from hermes.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Upper bounds of a turn; zero means no bound.

    ``tokens`` counts input and output of all model calls together; ``seconds`` is wall time.
    """

    steps: int = 90
    tokens: int = 0
    seconds: float = 0.0
    parallel_tools: int = 8
    empty_answers: int = 3
    truncated_calls: int = 2
    repeated_failures: int = 2

    def check(self, steps: int, usage: Usage) -> None:
        """Raise when another model call would go beyond the budget.

        Raises:
            TurnError: with code ``budget_steps`` or ``budget_tokens``.
        """
        if self.steps and steps >= self.steps:
            raise TurnError(
                f"The turn used its budget of {self.steps} model calls before it was done. "
                "Send another message to go on, or raise agent.max_turns.",
                code="budget_steps",
            )
        if self.tokens and usage.total >= self.tokens:
            raise TurnError(
                f"The turn used its budget of {self.tokens} tokens before it was done. "
                "Send another message to go on, or raise agent.max_tokens_per_turn.",
                code="budget_tokens",
            )
