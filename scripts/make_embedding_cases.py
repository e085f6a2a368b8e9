#!/usr/bin/env python3
"""Makes tests/cases/embeddings/all-minilm.json: texts, and what all-MiniLM-L6-v2 makes of them.

The vectors are those of sentence-transformers: the mean of the last hidden states, at length 1, in float32. FOLDER is
the model's. Needs torch 2.15.0 and transformers 5.24.0.

  make_embedding_cases.py FOLDER
"""
import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXTS = [
    "The cat sat on the mat.",
    "A kitten was sitting on a rug.",
    "Tax law changed twice in 1986; few noticed.",
    "Café, naïve, Straße: accents go, words stay.",
    "中文 and 日本語 beside English",
    "unbelievableness",
    "don't stop! (really?) #42 @home 3.14%",
    "👩‍👩‍👧 family",
    " ".join("a long text of many words goes on and on".split() * 40),
]


def main(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    cases = []
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            mean = model(**ids).last_hidden_state[0].mean(0)
        vector = torch.nn.functional.normalize(mean, dim=0)
        cases.append({"text": text, "ids": ids["input_ids"][0].tolist(), "vector": [round(x, 7) for x in vector.tolist()]})
    path = ROOT / "tests/cases/embeddings/all-minilm.json"
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
