"""Simple, valid encoders for the 256-element GGUF block formats (the gguf package only decodes them).

Each sub-block gets the plain scale that just covers its range: enough for test models, not tuned for quality.
"""
import numpy as np

BLOCK = 256


def _half(values):
    return values.astype(np.float16).view(np.uint8)


def _divide(numerator, denominator):
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def _affine(x, levels):
    """Blocks [n, 8, 32] as integers 0..levels with 6-bit scales and minima under two half-precision factors."""
    low = np.minimum(x.min(axis=-1), 0.0)
    scale = (x.max(axis=-1).clip(min=0.0) - low) / levels
    d = (scale.max(axis=-1, keepdims=True) / 63).astype(np.float16)
    d_min = (-low.min(axis=-1, keepdims=True) / 63).astype(np.float16)
    scales = np.round(_divide(scale, d.astype(np.float32).repeat(8, 1))).clip(0, 63).astype(np.uint8)
    minima = np.round(_divide(-low, d_min.astype(np.float32).repeat(8, 1))).clip(0, 63).astype(np.uint8)
    step = (d.astype(np.float32) * scales)[..., None]
    offset = (d_min.astype(np.float32) * minima)[..., None]
    quants = np.round(_divide(x + offset, step.repeat(32, 2))).clip(0, levels).astype(np.uint8)
    header = np.concatenate([_half(d), _half(d_min), _pack_scales(scales, minima)], axis=1)
    return header, quants


def _pack_scales(scales, minima):
    """Eight 6-bit scales and eight 6-bit minima in 12 bytes: the upper four of each spread over the spare bits."""
    first = scales[:, :4] | (scales[:, 4:] >> 4) << 6
    second = minima[:, :4] | (minima[:, 4:] >> 4) << 6
    third = (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4
    return np.concatenate([first, second, third], axis=1)


def _nibbles(quants):
    """Low four bits of [n, 8, 32]: sub-blocks 2i and 2i+1 share 32 bytes."""
    low = quants & 15
    return (low[:, 0::2] | low[:, 1::2] << 4).reshape(len(quants), BLOCK // 2)


def encode_q4_k(blocks):
    header, quants = _affine(blocks.reshape(-1, 8, 32), 15)
    return np.concatenate([header, _nibbles(quants)], axis=1)


def encode_q5_k(blocks):
    header, quants = _affine(blocks.reshape(-1, 8, 32), 31)
    fifth_bits = np.zeros((len(quants), 32), np.uint8)
    for sub_block in range(8):
        fifth_bits |= (quants[:, sub_block] >> 4) << sub_block
    return np.concatenate([header, fifth_bits, _nibbles(quants)], axis=1)


def encode_q6_k(blocks):
    x = blocks.reshape(-1, 16, 16)
    scale = np.abs(x).max(axis=-1) / 31
    d = (scale.max(axis=-1, keepdims=True) / 127).astype(np.float16)
    scales = np.round(_divide(scale, d.astype(np.float32).repeat(16, 1))).clip(0, 127).astype(np.int8)
    step = (d.astype(np.float32) * scales)[..., None]
    quants = (np.round(_divide(x, step.repeat(16, 2))).clip(-32, 31) + 32).astype(np.uint8)
    quarters = quants.reshape(-1, 2, 4, 32)  # two halves of 128, each in four runs of 32
    low, high = quarters & 15, quarters >> 4
    low_bytes = np.concatenate([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], axis=-1)
    high_bytes = high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6
    n = len(quants)
    return np.concatenate([low_bytes.reshape(n, 128), high_bytes.reshape(n, 64), scales.view(np.uint8), _half(d)], axis=1)


ENCODERS = {"Q4_K": encode_q4_k, "Q5_K": encode_q5_k, "Q6_K": encode_q6_k}


def encode(name, weights):
    """float32 [rows, k] -> uint8 [rows, bytes of a row]; k must be a multiple of 256."""
    rows, k = weights.shape
    if k % BLOCK:
        raise ValueError(f"{name} needs rows in multiples of {BLOCK} elements, not {k}")
    return np.ascontiguousarray(ENCODERS[name](weights.reshape(-1, BLOCK)).reshape(rows, -1))
