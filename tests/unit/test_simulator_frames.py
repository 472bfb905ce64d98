"""Framing and msgpack: any cut gives the same frames, any garbage a ProtocolError."""

import pytest
from fake_rank import record
from hypothesis import given
from hypothesis import strategies as st

from phantora_py.fields import Fields
from phantora_py.frames import MAX_PAYLOAD_BYTES, FrameReader, FrameType, ProtocolError, data_address, frame, questions

FRAMES = st.lists(st.tuples(st.sampled_from(FrameType), st.binary(max_size=200)), max_size=8)


@given(FRAMES, st.lists(st.integers(0, 50), max_size=100))
def test_frames_do_not_depend_on_how_the_stream_is_cut(frames: list[tuple[FrameType, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frame(kind, payload) for kind, payload in frames)
    reader, position = FrameReader(), 0
    found: list[tuple[int, bytes]] = []
    for size in cuts:
        found += reader.feed(stream[position : position + size])
        position += size
    found += reader.feed(stream[position:])
    assert found == frames
    assert not reader.pending_bytes


@given(st.binary(max_size=2000))
def test_any_bytes_give_frames_or_a_protocol_error(data: bytes) -> None:
    try:
        frames = list(FrameReader().feed(data))
    except ProtocolError:
        return
    assert sum(len(payload) + 8 for _kind, payload in frames) <= len(data)


def test_a_frame_that_is_too_long_is_refused_by_its_header() -> None:
    header = frame(FrameType.BATCH, b"")
    with pytest.raises(ProtocolError, match="more than the 16777216 allowed"):
        list(FrameReader().feed((MAX_PAYLOAD_BYTES + 1).to_bytes(4, "little") + header[4:]))


@given(st.binary(max_size=500))
def test_any_bytes_decode_to_a_map_or_give_a_protocol_error(data: bytes) -> None:
    try:
        fields = Fields.decode(data, "a test")
    except ProtocolError:
        return
    assert isinstance(fields.table, dict)


@pytest.mark.parametrize("data", [b"\x91" * 100_000, b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x81\xa1a"])
def test_bombs_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Fields.decode(data, "a test")


def test_wrong_fields_name_themselves() -> None:
    fields = Fields({"size": True, "name": 5, "list": [1, "a"], "maps": [{}, 3]}, "DEFINE")
    with pytest.raises(ProtocolError, match="DEFINE: 'size' is True, not an integer from 0 to 9"):
        fields.integer("size", 0, 9)
    with pytest.raises(ProtocolError, match="DEFINE: 'name' is 5, not text"):
        fields.text("name")
    with pytest.raises(ProtocolError, match="DEFINE lacks 'other'"):
        fields.blob("other")
    with pytest.raises(ProtocolError, match="'list' is 1, not text"):
        fields.texts("list")
    with pytest.raises(ProtocolError, match="'maps' is 3, not a map"):
        fields.maps("maps")
    assert fields.integer("absent", 0, 9, 4) == 4


def test_questions_are_the_records_that_have_a_reply() -> None:
    batch = record(1, 7) + record(5, 0, 11, lane=3) + record(10, 1) + record(8, 2, 2**63)
    assert list(questions(batch)) == [(11, 3), (2**63, 0)]
    assert list(questions(record(1, 7) * 3)) == []
    assert list(questions(b"")) == []


def test_a_data_header_is_checked() -> None:
    with pytest.raises(ProtocolError, match="shorter than its header"):
        data_address(b"\0" * 31)
    with pytest.raises(ProtocolError, match="last field"):
        data_address(b"\0" * 31 + b"\1")
    assert data_address(b"\7" + b"\0" * 15 + b"\1\0\0\0\2\0\0\0" + b"\0" * 8) == (7, 1, 2)
