"""The sentence transformer all-MiniLM-L6-v2 as an int8 ONNX file, for the embedder `minilm` of Commonplace.

`DIRECTORY` holds `model.onnx` and `model.json`, which says what it is; nothing is loaded here.
"""

from pathlib import Path

__version__ = "0.1.0"

DIRECTORY = Path(__file__).parent
