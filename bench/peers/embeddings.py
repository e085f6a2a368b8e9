#!/usr/bin/env python3
"""Embeddings of MiniLM, server against server on one machine: Kvasir in F32 and in Q8_0, llama.cpp's llama-server in F32.

    bench/peers/install.sh                              once; then kvasir pull all-minilm:22m
    bench/peers/embeddings.py TEXT_FILE --out bench/results/embeddings.json

Every program gets the same paragraphs in one request to /v1/embeddings, first once uncounted, then in turn. The llama-server
of several settings that answers fastest is the one that counts. Least cosines are to Kvasir's F32.
"""
import argparse
import contextlib
import json
import math
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
MODEL = "all-minilm:22m"
MIN_CHARACTERS, MAX_WORDS = 60, 150  # of a paragraph; a longer one may pass the 256 tokens of the model's folder

EMBEDDING_NAMES = {"word_embeddings": "token_embd", "position_embeddings": "position_embd",
                   "token_type_embeddings": "token_types", "LayerNorm": "token_embd_norm"}
LAYER_NAMES = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
               "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
               "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}


def gguf_name(name):
    """"blk.0.attn_q.weight" of "encoder.layer.0.attention.self.query.weight"; None: it is left out."""
    module, parameter = name.rsplit(".", 1)
    group, part = module.split(".", 1)
    if group == "embeddings":
        known = EMBEDDING_NAMES.get(part)
    else:
        _, layer, *rest = part.split(".") if group == "encoder" else (None, None)
        known = LAYER_NAMES.get(".".join(rest)) and f"blk.{layer}.{LAYER_NAMES['.'.join(rest)]}"
    return known and f"{known}.{parameter}"


def gguf_token(token):
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def write_gguf(folder, path):
    """The folder's model as llama.cpp reads it, every number as it is."""
    import gguf
    import numpy
    data = (folder / "model.safetensors").read_bytes()
    [length] = struct.unpack("<Q", data[:8])
    config = json.loads((folder / "config.json").read_text())
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([gguf_token(token) for token in sorted(vocab, key=vocab.get)])
    writer.add_token_type_count(config["type_vocab_size"])
    writer.add_bos_token_id(vocab["[CLS]"])
    writer.add_eos_token_id(vocab["[SEP]"])
    writer.add_sep_token_id(vocab["[SEP]"])
    writer.add_unk_token_id(vocab["[UNK]"])
    writer.add_pad_token_id(vocab["[PAD]"])
    writer.add_mask_token_id(vocab["[MASK]"])
    for name, entry in json.loads(data[8:8 + length]).items():
        if entry.get("dtype") != "F32" or gguf_name(name) is None:
            continue
        begin, end = (8 + length + place for place in entry["data_offsets"])
        writer.add_tensor(gguf_name(name), numpy.frombuffer(data[begin:end], numpy.float32).reshape(entry["shape"]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def paragraphs(path, count):
    lines = (line.strip() for line in path.read_text().splitlines())
    texts = [line for line in lines if len(line) >= MIN_CHARACTERS and not line.startswith("=") and
             len(line.split()) <= MAX_WORDS]
    if len(texts) < count:
        sys.exit(f"embeddings: {path}: has {len(texts)} paragraphs of {MIN_CHARACTERS} characters and up, needs {count}")
    return texts[:count]


class Server:
    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*map(str, command), "--port", str(port)], stdout=self.log, stderr=self.log)

    def wait(self):
        for _ in range(600):
            if self.process.poll() is not None:
                self.log.seek(0)
                raise SystemExit(f"embeddings: {self.name}: {self.log.read().decode(errors='replace')[-400:]}")
            with contextlib.suppress(OSError):
                if urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health").status == 200:
                    return
            time.sleep(0.1)
        raise SystemExit(f"embeddings: {self.name}: is not ready after 60 s")

    def embed(self, texts):
        """Seconds, tokens and vectors of one request."""
        body = json.dumps({"model": MODEL, "input": texts}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/embeddings", body,
                                         {"Content-Type": "application/json"})
        begin = time.monotonic()
        with urllib.request.urlopen(request) as answer:
            answer = json.load(answer)
        seconds = time.monotonic() - begin
        vectors = [row["embedding"] for row in sorted(answer["data"], key=lambda row: row["index"])]
        return seconds, answer["usage"]["prompt_tokens"], vectors

    def close(self):
        self.process.terminate()
        self.process.wait()


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def llama_commands(gguf_path, threads):
    for slots in (1, 8):
        for attention in ("on", "off"):
            yield (f"llama.cpp, {slots} slots, flash attention {attention}",
                   [PEERS / "bin" / "llama-native" / "llama-server", "-m", gguf_path, "--embedding", "--pooling", "mean", "-t",
                    threads, "-tb", threads, "-np", slots, "-c", 512 * slots, "-b", 4096, "-ub", 4096, "-fa", attention,
                    "--host", "127.0.0.1"])


def fastest_llama(gguf_path, texts, arguments):
    tried = {}
    for name, command in llama_commands(gguf_path, arguments.threads):
        server = Server(name, command, arguments.port)
        server.wait()
        server.embed(texts)
        tried[name] = len(texts) / server.embed(texts)[0]
        server.close()
        print(f"{name}: {tried[name]:.1f} texts/s", file=sys.stderr)
    best = max(tried, key=tried.get)
    return best, dict(llama_commands(gguf_path, arguments.threads))[best], tried


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=600, help="paragraphs")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--port", type=int, default=18270)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    texts = paragraphs(arguments.text, arguments.count)
    kvasir = ROOT / "build" / "release" / "bin" / "kvasir"
    [shown] = json.loads(subprocess.run([kvasir, "show", MODEL, "--json"], check=True, capture_output=True).stdout)
    limits = json.loads(subprocess.run([kvasir, "doctor", "--json"], check=True, capture_output=True).stdout)["limits"]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        gguf_path = pathlib.Path(folder) / "minilm.gguf"
        write_gguf(pathlib.Path(shown["path"]), gguf_path)
        best, command, tried = fastest_llama(gguf_path, texts, arguments)
        serve = [kvasir, "serve", MODEL, "--threads", arguments.threads, "--host", "127.0.0.1"]
        servers = [Server("kvasir F32", serve, arguments.port + 1), Server("kvasir Q8_0", [*serve, "--quantize", "q8_0"],
                                                                           arguments.port + 2),
                   Server(best, command, arguments.port + 3)]
        for server in servers:
            stack.callback(server.close)
            server.wait()
            server.vectors = server.embed(texts)[2]
        rates = {server.name: [] for server in servers}
        for _ in range(arguments.repeat):
            for server in servers:
                seconds, tokens, _ = server.embed(texts)
                rates[server.name].append(len(texts) / seconds)
                server.tokens = tokens
    rows = [{"program": server.name, "texts_per_s": rates[server.name], "median": statistics.median(rates[server.name]),
             "tokens": server.tokens,
             "least_cosine": min(map(cosine, server.vectors, servers[0].vectors))} for server in servers]
    report = {"texts": len(texts), "threads": arguments.threads, "limits": limits, "tried": tried, "rows": rows}
    print(json.dumps(report, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
