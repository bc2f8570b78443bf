"""The rules of this house that no off-the-shelf linter checks, as functions over parsed source.

Nothing here imports the product: a rule reads text and syntax trees alone.
"""
