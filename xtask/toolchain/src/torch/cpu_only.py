"""Makes an installed PyTorch one that needs no CUDA libraries: `cpu_only.py FOLDER` with the folder `torch` of an environment.

PyPI's PyTorch is built with CUDA. On the CPU nothing calls cuDNN, cuBLAS and the others, but the dynamic linker refuses to load
PyTorch without them: 3 GB. Here its libraries say that they can do without. Each name of an absent library becomes that of the C
library, which is always there, the versions that it should have become optional, and functions that no library has are weak: null
instead of an error. No code changes, and nothing stands in for the absent libraries.

The code for GPUs in the file is given back to the file system, as a hole.
"""

import os
import struct
import subprocess
import sys

ABSENT = ("libcublas", "libcudnn", "libcufft", "libcusparse", "libnccl", "libnvrtc", "libnvshmem_host")
LIBRARIES = ("libtorch_cuda.so", "libtorch_python.so", "libtorch_nvshmem.so")
PRESENT = "libc.so.6"

# ELF (man 5 elf): kinds of sections, a tag, a flag, a binding.
DYNAMIC, DYNAMIC_SYMBOLS, VERSIONS_NEEDED = 6, 11, 0x6FFFFFFE
NEEDED, WEAK_VERSION, GLOBAL, WEAK = 1, 2, 1, 2


class Library:
    def __init__(self, file):
        self.file = file
        header = self.read(0, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"{file.name} is no 64-bit library")
        (place,) = struct.unpack_from("<Q", header, 40)
        size, count, names = struct.unpack_from("<3H", header, 58)
        self.sections = [struct.unpack("<IIQQQQIIQQ", self.read(place + size * at, 64)) for at in range(count)]
        self.section_names = self.contents(self.sections[names])

    def read(self, place, size):
        self.file.seek(place)
        return self.file.read(size)

    def write(self, place, data):
        self.file.seek(place)
        self.file.write(data)

    def contents(self, section):
        return self.read(section[4], section[5])

    def of_kind(self, kind):
        return next(section for section in self.sections if section[1] == kind)

    def need_less(self):
        dynamic = self.of_kind(DYNAMIC)
        texts = self.contents(self.sections[dynamic[6]])
        tags = list(struct.iter_unpack("<QQ", self.contents(dynamic)))
        needed = {at: text(texts, value) for at, (tag, value) in enumerate(tags) if tag == NEEDED}
        present = next(tags[at][1] for at, name in needed.items() if name == PRESENT)
        for at, name in needed.items():
            if name.startswith(ABSENT):
                self.write(dynamic[4] + 16 * at + 8, struct.pack("<Q", present))
        self.versions(texts, present)
        symbols = self.of_kind(DYNAMIC_SYMBOLS)
        changed = bytearray(self.contents(symbols))
        for at in range(0, len(changed), 24):
            binding, kind = changed[at + 4] >> 4, changed[at + 4] & 15
            is_defined = changed[at + 6 : at + 8] != b"\0\0"
            if binding == GLOBAL and not is_defined:
                changed[at + 4] = WEAK << 4 | kind
        self.write(symbols[4], changed)

    def versions(self, texts, present):
        place, more = self.of_kind(VERSIONS_NEEDED)[4], True
        while more:
            _, count, name, first, more = struct.unpack("<HHIII", self.read(place, 16))
            if text(texts, name).startswith(ABSENT):
                self.write(place + 4, struct.pack("<I", present))
                version = place + first
                for _ in range(count):
                    _, flags, _, _, step = struct.unpack("<IHHII", self.read(version, 16))
                    self.write(version + 4, struct.pack("<H", flags | WEAK_VERSION))
                    version += step
            place += more

    def forget_device_code(self):
        for section in self.sections:
            if text(self.section_names, section[0]) == ".nv_fatbin":
                self.file.flush()
                place, size = (str(number) for number in section[4:6])
                # A file system without holes keeps the code, which does no harm.
                subprocess.run(
                    ["fallocate", "--punch-hole", "--offset", place, "--length", size, self.file.name],
                    stderr=subprocess.DEVNULL,
                )


def text(texts, at):
    return texts[at : texts.index(b"\0", at)].decode()


for name in LIBRARIES:
    with open(os.path.join(sys.argv[1], "lib", name), "r+b") as file:
        library = Library(file)
        library.need_less()
        library.forget_device_code()
