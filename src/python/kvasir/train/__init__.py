"""Training that ends in files of `kvasir quantize`: a llama model in torch whose rounding is that of the files.

    model = train.load("model.gguf")
    train.train_blocks(model, windows, train.BlockQatOptions(type="Q4_0"))
    train.export(model, "folder")  # and: kvasir quantize folder out.gguf --type Q4_0 --method rtn

It needs torch, numpy and gguf: pip install kvasir[train].
"""
from .block_qat import BlockQatOptions, BlockResult, train_blocks
from .data import own_windows, windows_of, windows_of_text
from .distill import DistillOptions, Distiller, student_of
from .export import differing_codes, export
from .fake_quant import fake_quantise, set_types
from .llama import Llama, LlamaConfig
from .load import load
from .masks import MaskedBlock, MaskOptions, mask_weights
from .prune import prune_neurons
from .prune_layers import RemovedLayer, prune_layers

__all__ = [
    "BlockQatOptions", "BlockResult", "DistillOptions", "Distiller", "Llama", "LlamaConfig", "MaskOptions", "MaskedBlock",
    "RemovedLayer", "differing_codes", "export", "fake_quantise", "load", "mask_weights", "own_windows", "prune_layers",
    "prune_neurons", "set_types", "student_of", "train_blocks", "windows_of", "windows_of_text",
]
