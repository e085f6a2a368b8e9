"""A small model learns, at each place of a text, what a larger one would say next."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import torch

from ..errors import usage_error
from .block_qat import schedule
from .checkpoint import Checkpoint, fingerprint_of
from .data import batch_of
from .divergence import divergence_of_heads
from .fake_quant import Linear
from .llama import Llama, LlamaConfig


@dataclasses.dataclass(frozen=True)
class DistillOptions:
    """A step sees `batch_size` windows. `frozen`: parts of the names of parameters that stay as they are, such as
    "embed_tokens". `save_every`: steps between checkpoints."""

    steps: int = 1000
    batch_size: int = 8
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    frozen: tuple[str, ...] = ()
    seed: int = 0
    save_every: int = 100


#: Gets the step and its loss, after each.
Progress = Callable[[int, float], object]


def student_of(teacher: Llama, *, hidden_size: int = 256, num_hidden_layers: int = 7, intermediate_size: int = 704,
               num_attention_heads: int = 4, num_key_value_heads: int = 2, seed: int = 0) -> Llama:
    """An untrained model of the teacher's vocabulary and texts: tied, its embeddings the teacher's along the directions
    that these differ in most. UsageError: heads that do not divide the width, or a width above the teacher's."""
    heads, most = num_attention_heads, teacher.config.hidden_size
    if not 0 < hidden_size <= most:
        raise usage_error(f"hidden_size: must be 1 to {most}, the teacher's, got {hidden_size}", "hidden_size")
    if hidden_size % heads != 0 or heads % num_key_value_heads != 0:
        raise usage_error(f"num_attention_heads: must divide {hidden_size} and be a multiple of {num_key_value_heads}, got {heads}",
                          "num_attention_heads")
    config = dataclasses.replace(
        teacher.config, hidden_size=hidden_size, num_hidden_layers=num_hidden_layers, intermediate_size=intermediate_size,
        num_attention_heads=heads, num_key_value_heads=num_key_value_heads, head_dim=hidden_size // heads,
        tie_word_embeddings=True)
    assert isinstance(config, LlamaConfig)
    student = Llama(config, teacher.texts)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            if parameter.ndim == 2 and "embed_tokens" not in name:
                # Outputs that are added to the stream are smaller the more of them there are.
                shrinks = "o_proj" in name or "down_proj" in name
                spread = parameter.shape[1] ** -0.5 * ((2 * num_hidden_layers) ** -0.5 if shrinks else 1.0)
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
        student.model.embed_tokens.weight.copy_(_projected(teacher.model.embed_tokens.weight, hidden_size))
    return student


def _projected(embeddings: torch.Tensor, size: int) -> torch.Tensor:
    """Onto the principal directions, scaled so that a token has a mean square of 0.02^2."""
    products = embeddings.double().T @ embeddings.double()
    directions = torch.linalg.eigh(products).eigenvectors[:, -size:].flip(1)
    projected = embeddings.double() @ directions
    return (projected * (0.02 / projected.pow(2).mean().sqrt())).float()


class Distiller:
    """Trains `student` on `windows` [count, length] by the distance (KL) of its next-token probabilities from the teacher's.
    Where a run meets windows more than once, the teacher reads them before it begins, and its last hidden states stay in memory.

    `checkpoint`: a folder; a run with the same arguments goes on where a stopped one was, and ends in the same bits on the
    same machine with the same number of threads. Matrices of the student with a type (set_types) are trained rounded."""

    def __init__(self, teacher: Llama, student: Llama, windows: torch.Tensor, options: DistillOptions = DistillOptions(), *,
                 checkpoint: str | os.PathLike[str] | None = None) -> None:
        if teacher.texts.get("tokenizer.json") != student.texts.get("tokenizer.json"):
            raise usage_error("student: must have the teacher's tokenizer, got another", "student")
        if teacher.config.vocab_size != student.config.vocab_size:
            raise usage_error(f"student: must have {teacher.config.vocab_size} tokens, got {student.config.vocab_size}", "student")
        self._teacher, self._student = teacher.requires_grad_(False), student.requires_grad_(True)
        self._windows, self._options = windows, options
        self._told: torch.Tensor | None = None  # the teacher's hidden states of all windows
        for name, parameter in student.named_parameters():
            parameter.requires_grad_(not any(part in name for part in options.frozen))
        trained = [parameter for parameter in student.parameters() if parameter.requires_grad]
        if not trained:
            raise usage_error(f"frozen: must leave something to train, got {', '.join(options.frozen)}", "frozen")
        self._optimizer = torch.optim.AdamW(trained, lr=options.learning_rate, betas=(0.9, 0.95),
                                            weight_decay=options.weight_decay)
        types = [(name, part.file_type) for name, part in student.named_modules() if isinstance(part, Linear)]
        self._checkpoint = Checkpoint(checkpoint, fingerprint_of(teacher, student, windows, options, types))
        self.losses: list[float] = []  #: of each step so far
        begun = self._checkpoint.load("distill")
        if begun is not None:
            student.load_state_dict(begun["student"])
            self._optimizer.load_state_dict(begun["optimizer"])
            self.losses = begun["losses"]

    def run(self, progress: Progress | None = None) -> list[float]:
        """Goes on to the last step and returns the loss of each."""
        if len(self.losses) < self._options.steps and self._options.steps * self._options.batch_size > len(self._windows):
            self._told = self._hidden_of_teacher()
        for step in range(len(self.losses), self._options.steps):
            self.losses.append(self._step(step))
            if (step + 1) % self._options.save_every == 0 or step + 1 == self._options.steps:
                self._checkpoint.save("distill", {"student": self._student.state_dict(), "losses": self.losses,
                                                  "optimizer": self._optimizer.state_dict()})
            if progress is not None:
                progress(step, self.losses[-1])
        return self.losses

    def _hidden_of_teacher(self) -> torch.Tensor:
        with torch.no_grad():
            return torch.cat([self._teacher.hidden(part) for part in self._windows.split(self._options.batch_size)])

    def _step(self, step: int) -> float:
        options = self._options
        batch = batch_of(len(self._windows), options.batch_size, options.seed, step)
        windows = self._windows[batch]
        for group in self._optimizer.param_groups:
            group["lr"] = options.learning_rate * schedule(step, options.steps)
        with torch.no_grad():
            hidden = self._teacher.hidden(windows) if self._told is None else self._told[batch]
            told = self._teacher.normalised(hidden).flatten(0, 1)
        said = self._student.normalised(self._student.hidden(windows)).flatten(0, 1)
        loss = divergence_of_heads(told, self._teacher.head_matrix, said, self._student.head_matrix)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._student.parameters(), 1.0)
        self._optimizer.step()
        return float(loss.detach())
