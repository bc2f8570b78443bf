"""Model providers: the port, its endpoints over HTTP with retries and fallbacks, and its fake.

Import the module that names what you need; nothing is re-exported here.
"""
