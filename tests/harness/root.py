"""The path of the checkout, whichever folder a test is in."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
