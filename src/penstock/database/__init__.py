"""SQLite and PostgreSQL behind one small interface: the only home of SQL drivers."""
