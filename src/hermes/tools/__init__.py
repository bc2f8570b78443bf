"""What the model may run on this machine, behind one port.

Nothing is imported here: name the module that you need.
"""
