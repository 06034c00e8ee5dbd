"""Pickles of other clients, read as text is read: nothing is unpickled here."""
