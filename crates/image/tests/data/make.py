"""Makes the pictures of this folder, with the pixels that other programs decode.

Requires Pillow with libjpeg-turbo and libwebp, and the program `cjpeg`. NAME.jpg has its pixels in NAME.want: RGB as Pillow decodes it, or as libjpeg's inks
give it. NAME.png has those in 8 bits with 1, 3 and 4 channels, then those in 16 bits, little-endian, by the rules of the crate's page.
NAME.bmp has those with 3 and 4 channels, and NAME.gif those of all frames, as TensorFlow decodes them. NAME.webp has those with 4 channels of its
first frame, as Pillow decodes them.
`crops.tsv` has rectangles by the rules of docs/order.md and of torchvision. `reduced.tsv` has the sizes and the CRC32C of the pixels of each
JPEG that Pillow decodes to a half, a quarter and an eighth.
"""

import io
import math
import pathlib
import struct
import subprocess
import tempfile
import zlib

from PIL import Image

HERE = pathlib.Path(__file__).parent
state = 1


def rand(n):
    """A number below n."""
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) % n


def picture(height, width, noise=60):
    """Waves of colour with noise."""
    image = Image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            waves = (math.sin(x / 3 + y / 5), math.sin(x / 4 - y / 3 + 1), math.cos((x + y) / 4))
            image.putpixel((x, y), tuple(min(255, max(0, int(128 + 90 * wave) + rand(noise + 1) - noise // 2)) for wave in waves))
    return image


def inks(image, adobe):
    """RGB of a CMYK picture, as TensorFlow computes it of what is stored."""
    data = image.tobytes()
    out = bytearray()
    for at in range(0, len(data), 4):
        # Pillow inverts what is stored. Adobe's programs store what the inks leave.
        c, m, y, k = (255 - ink if adobe else ink for ink in data[at : at + 4])
        out += bytes(left * k // 255 for left in (c, m, y))
    return bytes(out)


def keep(name, data, want=None):
    if want is None:
        image = Image.open(io.BytesIO(data))
        want = inks(image, True) if image.mode == "CMYK" else image.convert("RGB").tobytes()
    (HERE / f"{name}.jpg").write_bytes(data)
    # A picture of one colour has one pixel there.
    (HERE / f"{name}.want").write_bytes(want[:3] if want == want[:3] * (len(want) // 3) else want)


def pillow(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 85, **options})
    return out.getvalue()


def cjpeg(image, *options):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "a.ppm"
        image.save(source)
        run = subprocess.run(["cjpeg", "-quality", "85", *options, str(source)], check=True, capture_output=True)
        return run.stdout


def jpegs():
    image = picture(13, 21)
    samplings = {
        "yuv444": "1x1", "yuv422": "2x1", "yuv420": "2x2", "yuv440": "1x2", "yuv411": "4x1", "yuv410": "4x2", "yuv441": "1x4",
        "uneven": "2x2,2x1,1x2", "chroma": "1x1,2x2", "crossed": "1x2,2x1", "three": "3x1",
    }
    for name, sampling in samplings.items():
        keep(name, cjpeg(image, "-sample", sampling))
    for name in ("yuv444", "yuv422", "yuv420", "uneven"):
        keep(f"{name}-progressive", cjpeg(image, "-sample", samplings[name], "-progressive"))
    keep("restart", cjpeg(image, "-sample", "2x2", "-restart", "1B"))
    keep("restart-rows", cjpeg(picture(70, 9), "-sample", "2x2", "-restart", "1"))
    keep("restart-many", cjpeg(picture(9, 90), "-sample", "1x1", "-restart", "1B"))
    keep("restart-progressive", cjpeg(image, "-sample", "2x2", "-progressive", "-restart", "2B"))
    keep("optimized", cjpeg(picture(24, 24, 255), "-optimize"))
    keep("coarse", cjpeg(image, "-quality", "2"))
    keep("fine", cjpeg(picture(16, 16, 255), "-quality", "100", "-sample", "1x1"))
    with tempfile.TemporaryDirectory() as folder:
        scans = pathlib.Path(folder) / "scans"
        scans.write_text("0;\n1;\n2;\n")
        keep("three-scans", cjpeg(image, "-sample", "2x2", "-scans", str(scans)))
        keep("three-scans-restart", cjpeg(image, "-sample", "2x1", "-restart", "1B", "-scans", str(scans)))
        scans.write_text("0;\n1 2;\n")
        keep("two-scans", cjpeg(image, "-sample", "2x2", "-scans", str(scans)))
        # First coefficients with all bits but two, then single coefficients, then the bits that are left.
        scans.write_text(
            "0,1,2: 0-0, 0, 2;\n0: 1-5, 0, 1;\n0: 6-63, 0, 3;\n1: 1-63, 0, 1;\n2: 1-63, 0, 0;\n0,1,2: 0-0, 2, 1;\n0: 6-63, 3, 2;\n"
            "0: 6-63, 2, 1;\n0: 1-63, 1, 0;\n1: 1-63, 1, 0;\n0,1,2: 0-0, 1, 0;\n"
        )
        keep("many-scans", cjpeg(image, "-sample", "2x2", "-scans", str(scans)))
    keep("rgb", cjpeg(image, "-rgb"))
    keep("grey", pillow(image.convert("L")))
    keep("grey-progressive", pillow(image.convert("L"), progressive=True))
    keep("one", pillow(picture(1, 1)))
    keep("narrow", pillow(picture(5, 3), subsampling=2))
    keep("narrow-422", pillow(picture(5, 4), subsampling=1))
    keep("eight", pillow(picture(8, 8, 255), subsampling=2))
    keep("wide", cjpeg(Image.new("RGB", (65500, 1), (200, 100, 50)), "-sample", "1x1", "-optimize"))
    exif = Image.Exif()
    exif[0x0112] = 6
    keep("exif", pillow(image, exif=exif))
    cmyk = Image.merge("CMYK", [*picture(13, 21).split(), picture(13, 21).convert("L")])
    data = pillow(cmyk)
    keep("cmyk", data)
    at = data.index(b"Adobe")
    keep("ycck", data[: at + 11] + b"\2" + data[at + 12 :])
    # Without Adobe's marker the inks themselves are stored.
    plain = data[: at - 4] + data[at - 2 + 14 :]
    image = Image.open(io.BytesIO(plain))
    assert image.mode == "CMYK"
    keep("cmyk-plain", plain, inks(image, False))
    # Fill bytes before markers, and a comment behind the scan.
    data = cjpeg(picture(9, 9))
    at = data.index(b"\xff\xdb")
    keep("filled", data[:at] + b"\xff\xff\xff" + data[at:-2] + b"\xff\xff\xfe\x00\x05abc" + data[-2:])


def long_jpegs():
    """Pictures with more than two samples of colours where a block has one."""
    keep("long-422", cjpeg(picture(9, 70), "-sample", "2x1"))
    keep("long-440", cjpeg(picture(70, 9), "-sample", "1x2"))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def reduced():
    lines = ["name\treduction\theight\twidth\tcrc"]
    for path in sorted(HERE.glob("*.jpg")):
        for reduction in (2, 4, 8):
            image = Image.open(path)
            width, height = (-(-side // reduction) for side in image.size)
            # As `Image.draft` has it, which takes a size that does not give each reduction of a small picture.
            image._size, image.decoderconfig = (width, height), (reduction, 0)
            image.tile = [image.tile[0]._replace(extents=(0, 0, width, height))]
            pixels = inks(image, b"Adobe" in path.read_bytes()) if image.mode == "CMYK" else image.convert("RGB").tobytes()
            lines.append(f"{path.name}\t{reduction}\t{height}\t{width}\t{crc32c(pixels)}")
    (HERE / "reduced.tsv").write_text("\n".join(lines) + "\n")


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(name, kind, depth, channels, interlaced=False, palette=None, alphas=None, transparent=None):
    """A PNG of random samples, and its pixels."""
    height, width = 5, 7
    most = (1 << depth) - 1
    below = len(palette) if palette else most + 1
    pixels = [[[rand(below) for _ in range(channels)] for _ in range(width)] for _ in range(height)]
    if transparent is not None:
        pixels[2][3] = list(transparent)
    # Equal channels give themselves.
    pixels[1][1] = [pixels[1][1][0]] * channels

    def rows(x0, y0, dx, dy):
        out = b""
        for y in range(y0, height, dy):
            samples = [sample for x in range(x0, width, dx) for sample in pixels[y][x]]
            bits = "".join(format(sample, f"0{depth}b") for sample in samples)
            if bits:
                bits += "0" * (-len(bits) % 8)
                out += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
        return out

    data = b"".join(rows(*step) for step in ADAM7) if interlaced else rows(0, 0, 1, 1)

    def chunk(tag, body):
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))

    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced)))
    if palette:
        out += chunk(b"PLTE", bytes(sample for colour in palette for sample in colour))
    if alphas:
        out += chunk(b"tRNS", bytes(alphas))
    if transparent is not None:
        out += chunk(b"tRNS", b"".join(struct.pack(">H", sample) for sample in transparent))
    packed = zlib.compress(data)
    # Two chunks of data, and one without effect.
    out += chunk(b"IDAT", packed[:9]) + chunk(b"IDAT", packed[9:]) + chunk(b"tEXt", b"a\0b") + chunk(b"IEND", b"")

    bits = 16 if depth == 16 else 8
    full = (1 << bits) - 1
    eight, sixteen = b"", b""
    for c in (1, 3, 4):
        for row in pixels:
            for pixel in row:
                alpha = full
                if palette:
                    rgb = palette[pixel[0]]
                    alpha = alphas[pixel[0]] if alphas and pixel[0] < len(alphas) else full
                else:
                    # Fewer bits than 8 are scaled to 255.
                    scaled = [sample * 255 // most if depth < 8 else sample for sample in pixel]
                    rgb = scaled[:3] if channels > 2 else scaled[:1] * 3
                    if channels in (2, 4):
                        alpha = scaled[-1]
                    if transparent is not None and pixel == list(transparent):
                        alpha = 0
                grey = (9797 * rgb[0] + 19234 * rgb[1] + 3737 * rgb[2] + (16384 if bits == 16 else 0)) >> 15
                samples = {1: [grey], 3: rgb, 4: [*rgb, alpha]}[c]
                eight += bytes(sample >> 8 if bits == 16 else sample for sample in samples)
                sixteen += b"".join(struct.pack("<H", sample if bits == 16 else sample * 257) for sample in samples)
    (HERE / f"{name}.png").write_bytes(out)
    (HERE / f"{name}.want").write_bytes(eight + sixteen)


def pngs():
    for depth in (1, 2, 4, 8, 16):
        png(f"grey{depth}", 0, depth, 1)
    png("grey4-interlaced", 0, 4, 1, interlaced=True)
    png("grey2-transparent", 0, 2, 1, transparent=[2])
    png("grey16-transparent", 0, 16, 1, transparent=[40000])
    palette = [tuple(rand(256) for _ in range(3)) for _ in range(14)]
    png("palette4", 3, 4, 1, palette=palette)
    png("palette8-alpha", 3, 8, 1, palette=palette, alphas=[rand(256) for _ in range(9)])
    png("palette4-interlaced", 3, 4, 1, palette=palette, interlaced=True)
    for depth in (8, 16):
        png(f"rgb{depth}", 2, depth, 3)
        png(f"grey-alpha{depth}", 4, depth, 2)
        png(f"rgba{depth}", 6, depth, 4)
    png("rgb8-transparent", 2, 8, 3, transparent=[10, 20, 30])
    png("rgb16-interlaced", 2, 16, 3, interlaced=True)


def bmp(name, bits, down=False, header=40, masks=False):
    """A BMP of random bytes, and its pixels. The palette of one with 8 bits has no effect."""
    height, width = 5, 7
    n = bits // 8
    rows = [[[rand(256) for _ in range(n)] for _ in range(width)] for _ in range(height)]
    stored = b"".join(bytes(sum(row, [])) + bytes(-len(row) * n % 4) for row in rows)
    head = struct.pack("<IiiHHIIiiII", header, width, -height if down else height, 1, bits, 3 if masks else 0, len(stored), 0, 0, 0, 0)
    if masks:
        head += struct.pack("<III", 0xFF0000, 0xFF00, 0xFF)
    head += bytes(max(0, header - len(head)))
    palette = bytes(rand(256) for _ in range(1024)) if bits == 8 else b""
    start = 14 + len(head) + len(palette)
    out = b"BM" + struct.pack("<IHHI", start + len(stored), 0, 0, start) + head + palette + stored
    pixels = [pixel for row in (rows if down else rows[::-1]) for pixel in row]
    colours = [pixel[2::-1] if n > 1 else pixel * 3 for pixel in pixels]
    want = [bytes(colour) for colour in colours]
    want += [bytes([*colour, pixel[3] if n == 4 else 255]) for colour, pixel in zip(colours, pixels)]
    (HERE / f"{name}.bmp").write_bytes(out)
    (HERE / f"{name}.want").write_bytes(b"".join(want))


def bmps():
    bmp("bmp8", 8)
    bmp("bmp24", 24)
    bmp("bmp24-down", 24, down=True)
    bmp("bmp32", 32)
    bmp("bmp32-down", 32, down=True, header=124)
    bmp("bmp32-masks", 32, masks=True)


def lzw(numbers, bits, clear=True, end=True):
    """Codes of a frame. Without `clear` a full table stays, and without `end` there is no code at the end."""
    out, held, count = bytearray(), 0, 0
    first = 1 << bits

    def put(code):
        nonlocal held, count
        held |= code << count
        count += width
        while count >= 8:
            out.append(held & 255)
            held >>= 8
            count -= 8

    width, table, word = bits + 1, {(number,): number for number in range(first)}, ()
    put(first)
    entries = first + 2
    for number in numbers:
        if word + (number,) in table:
            word += (number,)
            continue
        put(table[word])
        if entries < 4096:
            table[word + (number,)] = entries
            width += entries == 1 << width and width < 12
            entries += 1
        elif clear:
            put(first)
            width, table, entries = bits + 1, {(number,): number for number in range(first)}, first + 2
        word = (number,)
    put(table[word])
    width += entries == 1 << width and width < 12
    if end:
        put(first + 1)
    return bytes(out) + (bytes([held]) if count else b"")


def blocks(data, size=255):
    return b"".join(bytes([len(data[at : at + size])]) + data[at : at + size] for at in range(0, len(data), size)) + b"\0"


def colours(bits):
    return bytes(rand(256) for _ in range(3 << bits))


def size_of(palette):
    """The flags of a palette."""
    return 0x80 | (len(palette) // 3).bit_length() - 2


def frame(height, width, bits, at=(0, 0), own=None, clear_at=None, disposal=0, interlaced=False, before=b"", size=255, garbage=b"", **codes):
    """A frame of random numbers. `own` is its palette, and `clear_at` the number that leaves a pixel as it is."""
    most = 1 << bits
    few = [rand(most) for _ in range(3)]
    numbers = [[few[rand(3)] if rand(2) else rand(most) for _ in range(width)] for _ in range(height)]
    lines = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)] if interlaced else range(height)
    out = before
    if clear_at is not None or disposal:
        out += b"!\xf9\x04" + struct.pack("<BHBB", disposal << 2 | (clear_at is not None), 7, clear_at or 0, 0)
    flags = (size_of(own) if own else 0) | (0x40 if interlaced else 0)
    out += b"," + struct.pack("<HHHHB", at[1], at[0], width, height, flags) + (own or b"") + bytes([bits])
    out += blocks(lzw([number for y in lines for number in numbers[y]], bits, **codes) + garbage, size)
    return out, numbers, at, own, clear_at


def gif(name, palette, frames, screen=(3, 300), after=b""):
    """A GIF, and its frames on a canvas that is as large as the largest one, black at first."""
    flags = size_of(palette) if palette else 0
    out = b"GIF89a" + struct.pack("<HHBBB", screen[1], screen[0], flags, 1, 0) + palette
    height = max(len(numbers) for _, numbers, *_ in frames)
    width = max(len(numbers[0]) for _, numbers, *_ in frames)
    canvas = [[bytes(3)] * width for _ in range(height)]
    want = b""
    for data, numbers, (top, left), own, clear_at in frames:
        out += data
        for y, row in enumerate(numbers, top):
            for x, number in enumerate(row, left):
                if y < height and x < width and number != clear_at:
                    canvas[y][x] = (own or palette)[3 * number : 3 * number + 3]
        want += b"".join(pixel for row in canvas for pixel in row)
    (HERE / f"{name}.gif").write_bytes(out + after + b";")
    (HERE / f"{name}.want").write_bytes(want)


def gifs():
    comment = b"!\xfe" + blocks(b"a comment", 4)
    repeat = b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    gif("gif-still", colours(4), [frame(5, 7, 4)])
    gif("gif-clear", colours(2), [frame(5, 7, 2, clear_at=1)])
    # Disposal has no effect, and the parts beyond the largest frame are left out.
    parts = [
        frame(6, 5, 3, before=repeat),
        frame(3, 9, 3, at=(2, 1), clear_at=2, disposal=2),
        frame(4, 4, 5, at=(4, 6), own=colours(5), disposal=3),
        frame(2, 2, 3, at=(9, 20), clear_at=7),
        frame(6, 9, 3, clear_at=0, disposal=1),
    ]
    gif("gif-parts", colours(3), parts)
    gif("gif-interlaced", b"", [frame(height, 6, 2, own=colours(2), interlaced=True) for height in (13, 1, 2, 4)])
    # Codes begin with two bits. Programs that write three are more common.
    gif("gif-black-white", colours(1), [frame(8, 9, bits) for bits in (1, 1)])
    gif("gif-codes", colours(8), [frame(80, 80, 8, clear=False), frame(9, 9, 7)])
    # Only the first control before a frame counts. What follows the pixels is not read.
    control = b"!\xf9\x04\x01\x07\0\x03\0"
    odd = [
        frame(4, 5, 3, before=comment + control, clear_at=1, size=1, end=False),
        frame(4, 5, 3, before=comment, size=7, garbage=b"\x12\x34"),
    ]
    # The number that leaves a pixel is that of the first control.
    odd[0] = (*odd[0][:4], 3)
    gif("gif-odd", colours(3), odd, after=comment)


def chunks(data):
    """The chunks of a WebP."""
    at = 12
    while at < len(data):
        size = struct.unpack("<I", data[at + 4 : at + 8])[0]
        yield data[at : at + 8 + size + size % 2]
        at += 8 + size + size % 2


def riff(*parts):
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def chunk(tag, content):
    return tag + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def sides(*numbers):
    return b"".join(struct.pack("<I", number)[:3] for number in numbers)


def webp(name, image, others=None, **options):
    """A WebP. `others` makes another file of the chunks of its pixels."""
    out = io.BytesIO()
    image.save(out, "webp", **options)
    data = out.getvalue()
    if others:
        data = others([part for part in chunks(data) if part[:4] != b"VP8X"])
    (HERE / f"{name}.webp").write_bytes(data)
    (HERE / f"{name}.want").write_bytes(Image.open(io.BytesIO(data)).convert("RGBA").tobytes())


def webps():
    global state
    state = 1
    rgba = picture(13, 21)
    rgba.putalpha(Image.frombytes("L", rgba.size, bytes(rand(256) if rand(2) else 255 * rand(2) for _ in range(13 * 21))))
    few = picture(11, 18).quantize(6).convert("RGB")
    webp("webp-lossy", picture(13, 21), quality=80)
    webp("webp-lossy-even", picture(18, 32), quality=30, method=0)
    webp("webp-lossy-alpha", rgba, quality=90)
    webp("webp-lossy-alpha-stored", rgba, lambda parts: still(parts[1:], rgba), quality=50)
    webp("webp-lossless", picture(9, 14), lossless=True)
    webp("webp-lossless-alpha", rgba, lossless=True, exact=True)
    webp("webp-palette", few, lossless=True)
    webp("webp-one", Image.new("RGBA", (1, 1), (1, 2, 3, 4)), lossless=True)
    # Chunks before and after the pixels, which the orientation of the EXIF data does not turn.
    exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    webp("webp-exif", picture(7, 10), exif=exif, icc_profile=b"a profile")
    # A first frame that covers a part of the canvas, and one that ends the file.
    webp("webp-frames", picture(6, 9), lambda parts: animation(parts, (9, 6), (2, 4), (8, 15)), quality=80)
    webp("webp-frames-alpha", rgba, lambda parts: animation(parts, rgba.size, (4, 2), (17, 26)), quality=80)


def still(parts, image):
    """A WebP whose alpha is stored without compression, from the left."""
    alpha = image.getchannel("A").tobytes()
    width = image.width
    left = [0 if at == 0 else alpha[at - width if at % width == 0 else at - 1] for at in range(len(alpha))]
    stored = bytes((value - before) % 256 for value, before in zip(alpha, left))
    header = chunk(b"VP8X", b"\x10\0\0\0" + sides(image.width - 1, image.height - 1))
    return riff(header, chunk(b"ALPH", b"\x04" + stored), *parts)


def animation(parts, size, at, canvas):
    """An animation of two equal frames."""
    header = chunk(b"VP8X", b"\x12\0\0\0" + sides(canvas[1] - 1, canvas[0] - 1))
    frames = [chunk(b"ANMF", sides(at[1] // 2, at[0] // 2, size[0] - 1, size[1] - 1, 40) + b"\0" + b"".join(parts))] * 2
    return riff(header, chunk(b"ANIM", b"\x10\x20\x30\xff\0\0"), *frames)


def crops():
    """Rectangles of the random crop, written from its definition."""
    mask = 2**64 - 1

    def mix(z):
        z ^= z >> 30
        z = z * 0xBF58476D1CE4E5B9 & mask
        z ^= z >> 27
        z = z * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    def rectangle(height, width, g):
        def u(i):
            return (mix(g + i * 0x9E3779B97F4A7C15 & mask) >> 11) / 2**53

        for k in range(10):
            area = height * width * (0.08 + 0.92 * u(4 * k + 1))
            ratio = math.exp(math.log(3 / 4) + u(4 * k + 2) * (math.log(4 / 3) - math.log(3 / 4)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return math.floor(u(4 * k + 3) * (height - h + 1)), math.floor(u(4 * k + 4) * (width - w + 1)), h, w
        w, h = width, height
        if width / height < 3 / 4:
            h = round(width / (3 / 4))
        elif width / height > 4 / 3:
            w = round(height * 4 / 3)
        return (height - h) // 2, (width - w) // 2, h, w

    lines = ["height\twidth\tg\ttop\tleft\th\tw"]
    for n in range(300):
        sides = [(375, 500), (1 + rand(40), 1 + rand(40)), (1 + rand(2000), 1 + rand(2000)), (1 + rand(3), 1 + rand(3000))]
        height, width = sides[n % 4] if n % 8 < 4 else sides[n % 4][::-1]
        g = rand(2**31) << 33 | rand(2**31) << 2 | rand(4)
        lines.append("\t".join(str(value) for value in (height, width, g, *rectangle(height, width, g))))
    (HERE / "crops.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    jpegs()
    pngs()
    crops()
    bmps()
    gifs()
    long_jpegs()
    reduced()
    webps()
