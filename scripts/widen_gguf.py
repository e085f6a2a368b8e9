#!/usr/bin/env python3
"""Copies a GGUF model with every weight widened to F32: the exact numbers that the quantised file stands for.

Needs numpy and the gguf package. One tensor at a time is in memory.
  widen_gguf.py model.gguf model-f32.gguf
"""
import sys

import gguf
import numpy as np

F32_FILE_TYPE = 0


def copy_metadata(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue  # the writer makes these itself
        value_type = field.types[0]
        element_type = field.types[-1] if value_type == gguf.GGUFValueType.ARRAY else None
        value = F32_FILE_TYPE if field.name == "general.file_type" else field.contents()
        writer.add_key_value(field.name, value, value_type, sub_type=element_type)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    reader = gguf.GGUFReader(sys.argv[1])
    writer = gguf.GGUFWriter(sys.argv[2], reader.fields["general.architecture"].contents())
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), 4 * int(tensor.n_elements))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        widened = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(np.ascontiguousarray(widened, np.float32))
    writer.close()


if __name__ == "__main__":
    main()
