#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures CV-CUDA on the work of bench_kernels' rows:

  cvcuda_peers.py [--json=FILE]

A row has the name of bench_kernels' row for the same work; report.py and plot.py join them by this name. Two rows have
no counterpart: median-3 and composite (RGB over RGB by a mask). The method is the same as in bench_kernels: device time
between events, the median of 100 samples, random pictures that rotate over 288 MiB, and a cudaMemcpyAsync of the same
bytes in the same run. It is a script because PyPI's wheel (cvcuda-cu13) has no headers. It also needs PyTorch. Exit
status: 0; 77 if CV-CUDA, PyTorch or the GPU is missing; 1 if a row failed.
"""
import argparse
import json
import math
import re
import statistics
import sys

try:
    import cvcuda
    import torch
    if not torch.cuda.is_available():
        raise ImportError('PyTorch sees no GPU')
except (ImportError, OSError) as missing:
    print(f'skipped: {missing}')
    sys.exit(77)

# As in bench_kernels.cpp. All rows use the first three sizes; some use all of them.
SIZES = {'8K': (7680, 4320), '4K': (3840, 2160), '1080p': (1920, 1080), '1440p': (2560, 1440), '720p': (1280, 720),
         '360p': (640, 360)}
ALL_SIZES = re.compile('^(gaussian-5|convolve-3x3|histogram)/GRAY8$')
POOL = 288 << 20
SAMPLES = 100
FORMATS = {'GRAY8': 1, 'RGBA': 4}

queue = torch.cuda.Stream()
on_queue = {'stream': cvcuda.as_stream(queue)}
border = {'border': cvcuda.Border.REFLECT101, **on_queue}


def picture(memory, height, width, channels, before=0):
    """A view of memory as a picture, after `before` bytes for each pixel."""
    start = before * height * width
    return memory[start:start + height * width * channels].view(height, width, channels)


def tensor(*args):
    return cvcuda.as_tensor(picture(*args), 'HWC')


def batch(image, pixel_format):
    """Conv2D accepts only batches of images."""
    images = cvcuda.ImageBatchVarShape(1)
    images.pushback(cvcuda.as_image(image, pixel_format))
    return images


# Each function returns `make(src, dst, height, width)`, which wraps one slot of the ring and returns a function that
# submits the work.
def filtered(channels, submit):
    def make(src, dst, height, width):
        a, b = tensor(src, height, width, channels), tensor(dst, height, width, channels)
        return lambda: submit(b, a)
    return make


def gaussian(channels, taps):
    sigma = 0.15 * taps + 0.35
    return filtered(channels, lambda dst, src: cvcuda.gaussian_into(dst, src, (taps, taps), (sigma, sigma), **border))


def convolve(channels, taps):
    weights = batch(torch.rand(taps, taps, 1, device='cuda') / taps ** 2, cvcuda.Format.F32)
    anchor = cvcuda.as_tensor(torch.full((1, 2), -1, dtype=torch.int32, device='cuda'), 'NC')
    pixel_format = {1: cvcuda.Format.U8, 4: cvcuda.Format.RGBA8}[channels]

    def make(src, dst, height, width):
        a, b = (batch(picture(memory, height, width, channels), pixel_format) for memory in (src, dst))
        return lambda: cvcuda.conv2d_into(b, a, weights, anchor, **border)
    return make


def laplacian(channels):
    return filtered(channels, lambda dst, src: cvcuda.laplacian_into(dst, src, 1, 1.0, **border))


def box_mean(channels, radius):
    taps = (2 * radius + 1, 2 * radius + 1)
    return filtered(channels, lambda dst, src: cvcuda.averageblur_into(dst, src, taps, **border))


def threshold(radius):
    mean, binary = cvcuda.AdaptiveThresholdType.MEAN_C, cvcuda.ThresholdType.BINARY
    return filtered(1, lambda dst, src: cvcuda.adaptivethreshold_into(dst, src, 255.0, mean, binary, 2 * radius + 1,
                                                                      5.0, **on_queue))


def median(channels):
    return filtered(channels, lambda dst, src: cvcuda.median_blur_into(dst, src, (3, 3), **on_queue))


def histogram():
    counts = cvcuda.as_tensor(torch.zeros((1, 256, 1), dtype=torch.int32, device='cuda'), 'HWC')

    def make(src, _, height, width):
        a = tensor(src, height, width, 1)
        return lambda: cvcuda.histogram_into(counts, a, **on_queue)
    return make


def composite():
    def make(src, dst, height, width):
        front, back, mask = (tensor(src, height, width, *part) for part in ((3, 0), (3, 3), (1, 6)))
        b = tensor(dst, height, width, 3)
        return lambda: cvcuda.composite_into(b, front, back, mask, **on_queue)
    return make


def rows():
    """Yields (name, bytes read and bytes written for each pixel, make)."""
    for name, channels in FORMATS.items():
        for taps in (3, 5, 7, 15, 31):
            yield f'gaussian-{taps}/{name}', channels, channels, gaussian(channels, taps)
        for taps in (3, 5, 7, 15, 31):
            yield f'convolve-{taps}x{taps}/{name}', channels, channels, convolve(channels, taps)
        yield f'laplacian/{name}', channels, channels, laplacian(channels)
        yield f'median-3/{name}', channels, channels, median(channels)
    for radius in (3, 7, 15):
        yield f'box-mean-r{radius}/GRAY8', 1, 1, box_mean(1, radius)
    yield 'threshold-r15/GRAY8', 1, 1, threshold(15)
    yield 'histogram/GRAY8', 1, 0, histogram()
    yield 'composite/RGB', 7, 3, composite()


def median_us(work):
    """The median device time of one call. `work` has a function for each slot of the ring."""
    turn, wait = 0, 200_000

    def interval(calls):
        """The events around calls that the host queues while the GPU waits. If the host was too slow, the GPU waits
        longer (in clocks)."""
        nonlocal turn, wait
        while True:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(wait)
            start.record()
            for _ in range(calls):
                work[turn]()
                turn = (turn + 1) % len(work)
            end.record()
            if not start.query() or wait > 20_000_000:
                return start, end
            wait *= 2

    interval(2)
    start, end = interval(3)
    end.synchronize()
    calls = max(1, min(64, math.ceil(300 / max(1, start.elapsed_time(end) * 1e3 / 3))))
    events = [interval(calls) for _ in range(SAMPLES)]
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) * 1e3 / calls for start, end in events)


def slots(pool, size, count):
    stride = (size + 511) // 512 * 512
    return [pool[i * stride:i * stride + size] for i in range(count)]


def measure(make, read, written, width, height, pools, copies):
    """`copies` caches the times of copies: number of bytes → µs."""
    largest = max(read, written) * width * height
    src, dst = (slots(pool, largest, POOL // (largest + 511)) for pool in pools)
    us = median_us([make(a, b, height, width) for a, b in zip(src, dst)])
    size = (read + written) * width * height // 2
    if size not in copies:
        src, dst = (slots(pool, size, POOL // (size + 511)) for pool in pools)
        copies[size] = median_us([lambda pair=pair: pair[1].copy_(pair[0]) for pair in zip(src, dst)])
    return {'cvcuda_us': us, 'copy_us': copies[size], 'over_copy': us / copies[size], 'samples': SAMPLES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--json')
    options = parser.parse_args()
    pools = [torch.randint(0, 256, (POOL,), dtype=torch.uint8, device='cuda') for _ in range(2)]
    torch.cuda.synchronize()
    results, copies, failed = [], {}, 0
    print(f'# CV-CUDA {cvcuda.__version__} on {torch.cuda.get_device_name()}\n{"":26} {"us":>9} {"/copy":>7}')
    with torch.cuda.stream(queue):
        for name, read, written, make in rows():
            for size in list(SIZES) if ALL_SIZES.search(name) else list(SIZES)[:3]:
                full = f'{name}/{size}'
                try:
                    result = measure(make, read, written, *SIZES[size], pools, copies)
                except (RuntimeError, TypeError, ValueError) as error:
                    failed += 1
                    print(f'{full:26} FAILED: {error}', flush=True)
                    continue
                results.append({'name': full, **result})
                print(f"{full:26} {result['cvcuda_us']:9.2f} {result['over_copy']:7.2f}", flush=True)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'context': {'cvcuda': cvcuda.__version__, 'device': torch.cuda.get_device_name()},
                       'benchmarks': results}, file, indent=1)
    print(f'# {len(results)} measured, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
