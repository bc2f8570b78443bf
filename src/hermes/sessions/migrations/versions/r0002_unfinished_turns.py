"""What turns that have not ended did so far.

Frozen; what changes later is a revision of its own.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "unfinished_turns",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("messages", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_unfinished_turns"),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("unfinished_turns")
