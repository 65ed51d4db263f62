# SPDX-License-Identifier: Apache-2.0
"""A folder in which a directory's changes are on the disk when they are answered, if they ask for that (chattr +D).

Ganesha's VFS back end has nothing else to make them durable by. An ext4 without a journal writes them and does not flush the
disk: as fast as if nothing had been asked for. Both servers then get a file system with a journal, in a file of that disk.
"""
import contextlib
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

IMAGE_BYTES = 8 << 30
ROUNDS = 30


def usual_seconds(change):
    """The lower quartile: others use the disk, too."""
    times = []
    for number in range(ROUNDS):
        begun = time.perf_counter()
        change(number)
        times.append(time.perf_counter() - begun)
    return statistics.quantiles(times, n=4)[0]


def flushes(folder):
    """Does a new name in a folder with +D take about as long as an fsync there?"""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        subprocess.run(["chattr", "+D", place], check=True)

        def create(number):
            os.close(os.open(f"{place}/{number}", os.O_CREAT | os.O_WRONLY))

        log = os.open(f"{place}/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

        def append(_):
            os.write(log, bytes(100))
            os.fsync(log)

        appended = usual_seconds(append)
        os.close(log)
        return usual_seconds(create) > appended / 4


@contextlib.contextmanager
def folder_that_flushes(folder):
    """`folder` itself, or one on a file system in a file there."""
    if flushes(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="bench-server.", dir=folder) as place:
        image, mount = pathlib.Path(place) / "image", pathlib.Path(place) / "mount"
        mount.mkdir()
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", str(image)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True)
        try:
            print(f"{folder} does not flush a directory's changes: both servers are on an ext4 with a journal in a file there", flush=True)
            if not flushes(mount):
                print("nor does that: Ganesha's changes of names are not durable here")
            yield str(mount)
        finally:
            subprocess.run(["umount", str(mount)], check=True)
