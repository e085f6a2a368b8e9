"""GGUF files with other metadata or tensor names than a fixture has, for files that real converters never write."""
import struct

ALIGNMENT = 32
U8, U16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = 0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, U32: 4, I32: 4, F32: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_FORMATS = {U8: "<B", U16: "<H", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}


def text(value):
    encoded = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def number(value_type, value):
    return struct.pack("<I", value_type) + struct.pack(_FORMATS[value_type], value)


def string(value):
    return struct.pack("<I", STRING) + text(value)


def array(value_type, values):
    items = [text(v) if value_type == STRING else struct.pack(_FORMATS[value_type], v) for v in values]
    return struct.pack("<IIQ", ARRAY, value_type, len(values)) + b"".join(items)


def first_elements(value, count):
    """The beginning of an array."""
    reader = _Reader(value, 4)
    element_type, _ = reader.take("<IQ")
    for _ in range(count):
        reader.skip(element_type)
    return value[:8] + struct.pack("<Q", count) + value[16:reader.at]


class _Reader:
    def __init__(self, content, at):
        self.content, self.at = content, at

    def take(self, form):
        values = struct.unpack_from(form, self.content, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        size = self.take("<Q")[0]
        self.at += size
        return self.content[self.at - size:self.at]

    def skip(self, value_type):
        if value_type == STRING:
            self.text()
        elif value_type == ARRAY:
            element_type, count = self.take("<IQ")
            for _ in range(count):
                self.skip(element_type)
        else:
            self.at += _SIZES[value_type]


class Gguf:
    """The parts of a file: `metadata` maps keys to typed values as bytes, `tensors` is [(name, the rest)]."""

    def __init__(self, content):
        reader = _Reader(content, 8)
        num_tensors, num_entries = reader.take("<QQ")
        self.metadata = {}
        for _ in range(num_entries):
            key = reader.text().decode()
            begin = reader.at
            reader.skip(reader.take("<I")[0])
            self.metadata[key] = content[begin:reader.at]
        self.tensors = []
        for _ in range(num_tensors):
            name = reader.text()
            begin = reader.at
            rank = reader.take("<I")[0]
            reader.at += 8 * rank + 12
            self.tensors.append((name, content[begin:reader.at]))
        self.data = content[-(-reader.at // ALIGNMENT) * ALIGNMENT:]

    def strings(self, key):
        """The elements of an array of strings."""
        reader = _Reader(self.metadata[key], 8)
        return [reader.text() for _ in range(reader.take("<Q")[0])]

    def fill(self, tensor, num_elements, value):
        """Sets every element of an F32 tensor."""
        offset = struct.unpack("<Q", dict(self.tensors)[tensor.encode()][-8:])[0]
        self.data = (self.data[:offset] + struct.pack("<f", value) * num_elements
                     + self.data[offset + 4 * num_elements:])

    def content(self):
        content = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata))
        content += b"".join(text(key) + value for key, value in self.metadata.items())
        content += b"".join(text(name) + rest for name, rest in self.tensors)
        return content + b"\0" * (-len(content) % ALIGNMENT) + self.data
