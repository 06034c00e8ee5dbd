"""HTTP on uvicorn: connections, requests, long uploads and downloads."""
