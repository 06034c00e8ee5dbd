"""The Python SDK: a client of a Penstock server, and of nothing else in this package.

`import penstock` gives its public names. It needs httpx and msgspec; pyarrow, lance and other
libraries are loaded by the calls that use them.
"""
