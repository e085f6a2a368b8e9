"""Drives llama.cpp's converter over a folder, for models without a tokenizer.

The converter is read from an unpacked source of the package llama-cpp-python (vendor/llama.cpp). Two things are
replaced: the vocabulary, because goldens have token ids only, and so the check of its hash.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import torch

VERSION = "0.3.36"  # of llama-cpp-python, whose vendor/llama.cpp has the converter


def byte_tokenizer(vocab):
    """A tokenizer.json of `vocab` tokens, for converters that count them."""
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
            "decoder": None, "model": {"type": "BPE", "vocab": {f"t{i}": i for i in range(vocab)}, "merges": []}}


def to_gguf(source, llama_cpp, folder, outfile, vocab, options):
    """Writes `outfile` from the model in `folder`: matrices in BF16, vectors in F32."""
    llama_cpp = str(pathlib.Path(llama_cpp).resolve())
    if llama_cpp not in sys.path:
        sys.path[:0] = [llama_cpp, llama_cpp + "/gguf-py"]
    import gguf
    import conversion

    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work) / source
        shutil.copytree(folder, work)
        (work / "tokenizer.json").write_text(json.dumps(byte_tokenizer(vocab)))
        config = json.loads((work / "config.json").read_text()) | options.get("config", {})
        (work / "config.json").write_text(json.dumps(config))
        hparams = conversion.ModelBase.load_hparams(work, False)
        architecture = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
        base = conversion.get_model_class(architecture, mmproj=False)

        class WithoutVocabulary(base):
            model_arch = base.model_arch

            def set_vocab(self):
                self._set_vocab_none()

            def set_gguf_parameters(self):
                super().set_gguf_parameters()
                self.gguf_writer.add_vocab_size(vocab)
                for key, value in options.get("keys", {}).items():
                    self.gguf_writer.add_key_value(key.format(arch=self.gguf_writer.arch), *value)

        with torch.inference_mode():
            WithoutVocabulary(work, gguf.LlamaFileType.MOSTLY_BF16, pathlib.Path(outfile), eager=True,
                              model_name=f"golden {source}",
                              sentence_transformers_dense_modules=options.get("dense_modules", False)).write()
