"""The commands of the program, one module each; ``main`` loads the one that is run."""
