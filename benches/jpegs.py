"""Made JPEG pictures of 500 x 375: smooth waves with noise, quality 90."""

import io

import numpy as np
import PIL.Image


def smooth(rng, height, width):
    y, x = np.mgrid[:height, :width]
    waves = [128 + 70 * np.sin(x / a + y / b + rng.random()) for a, b in ((17, 31), (23, 19), (41, 13))]
    return (np.stack(waves, -1) + rng.normal(0, 6, (height, width, 3))).clip(0, 255).astype(np.uint8)


def jpegs(rng):
    files = []
    for _ in range(32):
        file = io.BytesIO()
        PIL.Image.fromarray(smooth(rng, 375, 500)).save(file, "jpeg", quality=90)
        files.append(file.getvalue())
    return files
