"""What Pillow makes of PNG and WebP files: FOLDER. Writes FOLDER/NAME.png and NAME.webp of
many kinds, and beside each NAME.png.rgb: width and height, 4 bytes each, and the pixels of
convert("RGB"). Exits with 77 and the reason where Pillow is not there."""
import pathlib
import struct
import sys
import zlib

try:
    import numpy
    from PIL import Image, features
    assert features.check("webp"), "Pillow without WebP"
except (ImportError, AssertionError) as error:
    print(error)
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])
random = numpy.random.default_rng(1)


def expect(name):
    with Image.open(folder / name) as image:
        rgb = numpy.asarray(image.convert("RGB"))
    height, width = rgb.shape[:2]
    (folder / f"{name}.rgb").write_bytes(struct.pack("<II", width, height) + rgb.tobytes())


def png(name, depth, color, channels, extra=b"", interlace=False):
    """A PNG of random bits, made by hand: Pillow writes only some kinds."""
    for width, height in ((13, 9), (1, 1), (8, 3)):
        row = (width * channels * depth + 7) // 8
        rows = random.integers(0, 256, (height, row), "uint8")
        if color == 3 and depth == 8:
            rows %= 7
        data = b"".join(b"\0" + line.tobytes() for line in rows)
        chunk = lambda kind, body: (struct.pack(">I", len(body)) + kind + body
                                    + struct.pack(">I", zlib.crc32(kind + body)))
        header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
        (folder / f"{name}_{width}.png").write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra(chunk)
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))
        expect(f"{name}_{width}.png")


nothing = lambda chunk: b""
palette = lambda count: random.integers(0, 256, 3 * count, "uint8").tobytes()
for depth in (1, 2, 4, 8, 16):
    png(f"gray{depth}", depth, 0, 1, nothing)
    png(f"gray{depth}_clear", depth, 0, 1, lambda chunk: chunk(b"tRNS", b"\0\1"))
for depth in (8, 16):
    png(f"rgb{depth}", depth, 2, 3, nothing)
    png(f"rgb{depth}_clear", depth, 2, 3, lambda chunk: chunk(b"tRNS", b"\0\1\0\2\0\3"))
    png(f"gray{depth}_alpha", depth, 4, 2, nothing)
    png(f"rgb{depth}_alpha", depth, 6, 4, nothing)
for depth, count in ((1, 2), (2, 4), (4, 16), (8, 7)):
    png(f"palette{depth}", depth, 3, 1, lambda chunk: chunk(b"PLTE", palette(count)))
    png(f"palette{depth}_clear", depth, 3, 1,
        lambda chunk: chunk(b"PLTE", palette(count)) + chunk(b"tRNS", b"\x00\x80"))
png("gamma", 8, 2, 3, lambda chunk: chunk(b"gAMA", struct.pack(">I", 45455)))

waves = numpy.sin(numpy.arange(37 * 50 * 4).reshape(37, 50, 4) / 97) * 100 + 128
for channels, mode in ((3, "RGB"), (4, "RGBA")):
    pixels = Image.fromarray(waves[..., :channels].astype("uint8"), mode)
    for name, options in (("lossy", {"quality": 70}), ("lossless", {"lossless": True}),
                          ("exact", {"lossless": True, "exact": True})):
        pixels.save(folder / f"{name}_{mode}.webp", **options)
        expect(f"{name}_{mode}.webp")
    pixels.save(folder / f"pillow_{mode}.png")
    expect(f"pillow_{mode}.png")
Image.fromarray(waves[..., 0].astype("uint8")).save(folder / "gray.webp")
expect("gray.webp")
# Not an image that is trained on.
pixels.save(folder / "animation.webp", save_all=True, append_images=[pixels.rotate(90)])
