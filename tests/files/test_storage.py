"""Files that are damaged, cut short, forged or half written never do harm."""

import contextlib
import errno
import json
import os
import random
import resource
import struct

import numpy as np
import pytest
from soak import SOAK
from strategies import Stream
from watching import frozen

from dynhac import FileError, GraphHAC
from dynhac.files import format as storage

DIGEST = storage.DIGEST_SIZE


def small_model(seed=0, text=False, n=14):
    stream = Stream(random.Random(seed), "few", n, text)
    g = GraphHAC(0.1, 0.01)
    g.update(**stream.seed_with("blobs", n))
    for _ in range(6):
        g.update(**stream.next())
    return g


def content(g, path):
    g.save(path)
    return path.read_bytes()


def sealed(data):
    """The bytes with the checksum that goes with them."""
    return data[:-DIGEST] + storage.checksum_of(data[:-DIGEST])


def damaged(data, rng):
    """A copy with something flipped, overwritten, moved or cut off."""
    spoilt = bytearray(data)
    at = rng.randrange(len(data))
    length = rng.choice((1, 2, 4, 8, 64, 500))
    match rng.randrange(6):
        case 0 | 1:
            spoilt[at] ^= 1 << rng.randrange(8)
        case 2:
            spoilt[at : at + length] = rng.randbytes(len(spoilt[at : at + length]))
        case 3:
            spoilt[at : at + length] = bytes(len(spoilt[at : at + length]))
        case 4:
            source = rng.randrange(len(data))
            piece = data[source : source + length]
            spoilt[at : at + len(piece)] = piece
        case 5:
            del spoilt[at : at + rng.choice((length, len(data)))]
    return bytes(spoilt)


@pytest.mark.parametrize("text", [False, True])
def test_damaged_files_are_refused(text, tmp_path):
    path = tmp_path / "model.dynhac"
    g = small_model(text=text)
    data = content(g, path)
    rng = random.Random(1)
    refused = 0
    for _ in range(5_500 * SOAK):
        spoilt = damaged(data, rng)
        path.write_bytes(spoilt)
        if spoilt == data:
            assert frozen(GraphHAC.load(path)) == frozen(g)
        else:
            with pytest.raises(FileError):
                GraphHAC.load(path)
            refused += 1
    assert refused > 5_000


@pytest.mark.parametrize("size", [0, 1, 7, 8, 11, 12, 23, 24, 63, 64])
def test_the_beginning_of_a_file(size, tmp_path):
    path = tmp_path / "model.dynhac"
    data = content(small_model(), path)
    path.write_bytes(data[:size])
    with pytest.raises(FileError, match=r"cut short|not a file of dynhac|checksum"):
        GraphHAC.load(path)


@pytest.mark.parametrize("text", [False, True])
def test_forged_files_are_refused_or_consistent(text, tmp_path):
    """Damage behind a right checksum: what is let in must stand any further use."""
    path = tmp_path / "model.dynhac"
    rng = random.Random(2)
    taken = 0
    for seed in range(5):
        data = content(small_model(seed, text, rng.choice((6, 14, 30))), path)
        for _ in range(300 * SOAK):
            path.write_bytes(sealed(damaged(data, rng)))
            try:
                g = GraphHAC.load(path)
            except FileError:
                continue
            taken += 1
            assert g.verify().wrong_caches == ()
            stand_use(g, rng)
    assert taken > 50


def stand_use(g, rng):
    ids = g.ids.tolist()
    g.labels(n_clusters=len(ids)), g.edges(), repr(g)
    for _ in range(3):
        gone = rng.sample(ids, min(len(ids), 2))
        ids = [v for v in ids if v not in gone]
        u, v = ids[:-1], ids[1:]
        weights = [g.resolution * 2.0**32 * (rng.random() + 0.1) for _ in u]
        with contextlib.suppress(ValueError):  # the sum of all weights may be large already
            g.update(remove=gone, edges=(u, v, weights))
    g.remove(g.ids)
    assert len(g) == 0
    assert g.verify().ok


def parts(data):
    _, _, _, header_length = storage.PROLOGUE.unpack_from(data)
    end = len(data) - DIGEST - 8
    (directory_length,) = struct.unpack_from("<Q", data, end)
    start = storage.PROLOGUE.size
    return (
        json.loads(data[start : start + header_length]),
        data[start + header_length : end - directory_length],
        json.loads(data[end - directory_length : end]),
    )


def forged(header, arrays, directory):
    head, tail = (json.dumps(part).encode() for part in (header, directory))
    start = storage.PROLOGUE.pack(storage.MAGIC, storage.FORMAT_VERSION, 0, len(head))
    return sealed(start + head + arrays + tail + struct.pack("<Q", len(tail)) + bytes(DIGEST))


@pytest.mark.parametrize(
    "entry",
    [
        ["a", "<f8", [2**60]],
        ["a", "<f8", [2**40, 2**40]],
        ["a", "<f8", [2**61, 0]],
        ["a", "<f8", [-1]],
        ["a", "<f8", [1.0]],
        ["a", "<f8", [True]],
        ["a", "<f8", 1],
        ["a", "<f8", [0] * 9],
        ["a", "O", [1]],
        ["a", "|O8", [1]],
        ["a", ">f8", [1]],
        ["a", "<c16", [1]],
        ["a", "<U4", [1]],
        ["a", ["<f8"], [1]],
        [7, "<f8", [1]],
        ["a", "<f8"],
        "abc",
        None,
        {},
    ],
)
def test_forged_directories(entry, tmp_path):
    path = tmp_path / "forged.dynhac"
    header = {"kind": "Test", "header": {}}
    path.write_bytes(forged(header, bytes(100), [entry]))
    with pytest.raises(FileError, match="damaged"):
        storage.read_file(path, "Test")
    path.write_bytes(forged(header, bytes(100), entry))
    with pytest.raises(FileError, match="damaged"):
        storage.read_file(path, "Test")


@pytest.mark.parametrize("header", [None, [], {}, {"kind": "Test"}, {"kind": 1, "header": {}}])
def test_forged_headers(header, tmp_path):
    path = tmp_path / "forged.dynhac"
    path.write_bytes(forged(header, b"", []))
    with pytest.raises(FileError, match="damaged"):
        storage.read_file(path, "Test")


def test_forged_lengths_and_json(tmp_path):
    path = tmp_path / "forged.dynhac"
    good = forged({"kind": "Test", "header": {}}, b"", [])
    for at in (16, len(good) - DIGEST - 8):
        for length in (2**63, 2**64 - 1, 2**40, len(good)):
            path.write_bytes(sealed(good[:at] + struct.pack("<Q", length) + good[at + 8 :]))
            with pytest.raises(FileError, match="damaged"):
                storage.read_file(path, "Test")
    for text in (b"[" * 100_000, b"\xff", b"", b"{"):
        head = storage.PROLOGUE.pack(storage.MAGIC, storage.FORMAT_VERSION, 0, len(text))
        path.write_bytes(sealed(head + text + b"[]" + struct.pack("<Q", 2) + bytes(DIGEST)))
        with pytest.raises(FileError, match="JSON"):
            storage.read_file(path, "Test")


def test_arrays_and_header_come_back(tmp_path):
    path = tmp_path / "file.dynhac"
    rng = np.random.default_rng(0)
    arrays = {
        f"{kind}{shape}": (rng.random(shape) * 100).astype(kind)
        for kind in ("?", "i1", "u1", "i2", "u4", "i8", "u8", "f4", "f8", ">i8", ">f4")
        for shape in [(), (0,), (7,), (3, 0), (2, 3, 4)]
    }
    arrays["strided"] = np.arange(20)[::3]
    arrays["fortran"] = np.asfortranarray(rng.random((3, 5)))
    arrays["nan"] = np.array([np.nan, -0.0, np.inf])
    header = {"π": [1, None, "\ud800", {"x": 0.1 + 0.2}], "tiny": 5e-324}
    storage.write_file(path, "Test", header, arrays)
    again, found = storage.read_file(path, "Test")
    assert again == header
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        assert found[name].shape == array.shape
        assert np.ascontiguousarray(array, found[name].dtype).tobytes() == found[name].tobytes()
        assert not found[name].flags.writeable
    with pytest.raises(TypeError, match="array a has dtype object"):
        storage.write_file(path, "Test", {}, {"a": np.array([None])})
    with pytest.raises(TypeError, match="array a has dtype <U1"):
        storage.write_file(path, "Test", {}, {"a": np.array(["x"])})
    assert list(storage.read_file(path, "Test")[1]) == list(arrays)


def test_what_a_refusal_says(tmp_path):
    path = tmp_path / "model.dynhac"
    data = content(small_model(), path)
    with pytest.raises(FileError, match=r"model\.dynhac: it holds a GraphHAC, not a DynHAC"):
        storage.read_file(path, "DynHAC")
    path.write_bytes(sealed(data[:8] + struct.pack("<I", 7) + data[12:]))
    with pytest.raises(FileError, match=r"format version 7, and this .* reads version 2;"):
        GraphHAC.load(path)
    path.write_bytes(b"PK\3\4" + bytes(1000))
    with pytest.raises(FileError, match=r"model\.dynhac: it is not a file of dynhac"):
        GraphHAC.load(path)
    path.write_bytes(data[:-1])
    with pytest.raises(FileError, match="damaged: the checksum"):
        GraphHAC.load(path)
    with pytest.raises(FileNotFoundError):
        GraphHAC.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        GraphHAC.load(tmp_path)
    assert issubclass(FileError, ValueError)


def names_in(folder):
    return sorted(file.name for file in folder.iterdir())


def test_places_that_cannot_be_written(tmp_path):
    g = small_model()
    with pytest.raises(FileNotFoundError):
        g.save(tmp_path / "nowhere" / "model")
    (tmp_path / "file").write_text("text")
    with pytest.raises(NotADirectoryError):
        g.save(tmp_path / "file" / "model")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        g.save(tmp_path / "folder")
    assert names_in(tmp_path) == ["file", "folder"]
    assert names_in(tmp_path / "folder") == []
    g.remove(g.ids)  # nobody holds the lock


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_a_crash_before_the_end_keeps_the_old_file(call, error, tmp_path, monkeypatch):
    path = tmp_path / "model.dynhac"
    old = content(small_model(1), path)
    g = small_model(2)

    def crash(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, call, crash)
        with pytest.raises(type(error)) as caught:
            g.save(path)
    assert path.read_bytes() == old
    assert names_in(tmp_path) == ["model.dynhac"]
    g.update(add=10**6)  # nobody holds the lock, although the traceback is still there
    assert caught
    g.save(path)
    assert frozen(GraphHAC.load(path)) == frozen(g)


@pytest.mark.parametrize("room", [0, 10, 3_000])
def test_a_full_disk_keeps_the_old_file(room, tmp_path):
    path = tmp_path / "model.dynhac"
    old = content(small_model(1), path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            small_model(2).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == old
    assert names_in(tmp_path) == ["model.dynhac"]


def test_links_and_modes_stay(tmp_path):
    g = small_model()
    real, link = tmp_path / "real", tmp_path / "link"
    g.save(real)
    assert real.stat().st_mode & 0o111 == 0
    real.chmod(0o600)
    link.symlink_to(real)
    g.remove(g.ids[:2])
    g.save(str(link))
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert frozen(GraphHAC.load(real)) == frozen(g)
