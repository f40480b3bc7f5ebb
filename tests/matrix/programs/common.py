"""Makes the examples' model importable; a user's program lies elsewhere than the frameworks do."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples"))
