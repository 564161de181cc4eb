#!/usr/bin/env python3
"""Unpacks a compressed Linux image, since an emulated machine would need half its boot for that.

    unpack-kernel.py VMLINUZ VMLINUX      xz and zstd, as Debian packs; zstd needs the program of that name

QEMU starts the ELF file by its PVH entry (Documentation/arch/x86/boot.rst, and XEN_ELFNOTE_PHYS32_ENTRY).
"""
import lzma, subprocess, sys


def xz(data):
    try: return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
    except lzma.LZMAError: return b""


def zstd(data):
    # what follows the frame is no frame: zstd says so after it has written everything
    return subprocess.run(["zstd", "-d", "-q", "-c"], input=data, capture_output=True).stdout


image = open(sys.argv[1], "rb").read()
for magic, unpack in ((b"\xfd7zXZ\0", xz), (b"\x28\xb5\x2f\xfd", zstd)):
    at = image.find(magic)
    while at >= 0:
        kernel = unpack(image[at:])
        if kernel[:4] == b"\x7fELF":
            open(sys.argv[2], "wb").write(kernel)
            sys.exit()
        at = image.find(magic, at + 1)
sys.exit(f"no compressed ELF file in {sys.argv[1]}")
