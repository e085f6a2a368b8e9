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


def stand_in_tokenizer(vocab, kind):
    """A tokenizer.json of `vocab` tokens, for converters that count them or look at its kind."""
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
            "decoder": None, "model": {"type": kind, "vocab": {f"t{i}": i for i in range(vocab)}, "merges": []}}


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
        (work / "tokenizer.json").write_text(json.dumps(stand_in_tokenizer(vocab, options.get("tokenizer", "BPE"))))
        config = json.loads((work / "config.json").read_text()) | options.get("config", {})
        (work / "config.json").write_text(json.dumps(config))
        hparams = conversion.ModelBase.load_hparams(work, False)
        architecture = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
        base = conversion.get_model_class(architecture, mmproj=False)
        base = getattr(base, "Ministral3Model", base)  # what Mistral3Model hands all work to

        class WithoutVocabulary(base):
            model_arch = base.model_arch

            def set_vocab(self):
                self._set_vocab_none()

            def set_gguf_parameters(self):
                super().set_gguf_parameters()
                self.gguf_writer.add_vocab_size(vocab)
                if "type_vocab_size" in self.hparams:
                    self.gguf_writer.add_token_type_count(self.hparams["type_vocab_size"])

        with torch.inference_mode():
            converter = WithoutVocabulary(work, gguf.LlamaFileType.MOSTLY_BF16, pathlib.Path(outfile), eager=True,
                                          model_name=f"golden {source}",
                                          sentence_transformers_dense_modules=(work / "modules.json").is_file())
            # Keys that the converter reads by a name from before transformers 5.
            converter.hparams.update(options.get("hparams", {}))
            converter.write()
