"""What a person at a terminal sees and types: views of a turn, input, slash commands.

Which conversation is held and how the program ends is for the commands to say.
"""
