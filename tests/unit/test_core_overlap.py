"""Kernels beside communication, links that change and traffic of others, on jobs whose times are worked out by hand."""

import struct
from collections.abc import Iterable

import pytest

from phantora_netsim import Activity, Network, Simulation

KERNEL, COLLECTIVE = 1, 4
GB_PER_S = 1e9  # a byte per nanosecond
INFINITE = float("inf")
COMPUTE_STREAM, COMMUNICATION_STREAM = 0, 1
Slowdowns = dict[int, tuple[float, float]]


def record(kind: int, delta: int, stream: int, a: int) -> bytes:
    return struct.pack("<BBHIQQQ", kind, 0, 0, stream, delta, a, 0)


def kernel(delta: int, tens: int) -> bytes:
    """Takes so many times 10 ns."""
    return record(KERNEL, delta, COMPUTE_STREAM, tens)


def collective(delta: int = 0) -> bytes:
    return record(COLLECTIVE, delta, COMMUNICATION_STREAM, 1)


def one_link() -> Network:
    network = Network()
    network.add_link(GB_PER_S)
    return network


def run(
    programs: Iterable[bytes],
    slowdowns: Slowdowns | None = None,
    network: Network | None = None,
    volume_bytes: int = 1000,
    latency_ns: int = 0,
) -> dict[tuple[int, int], list[int]]:
    """Ends of what each rank issued, by (rank, stream). Its collective moves the volume over one link."""
    programs = list(programs)
    made = Simulation(len(programs), network or one_link())
    made.define_comm(5, len(programs))
    activity = Activity(volume_bytes, latency_ns, [(0, 1.0)])
    for rank, program in enumerate(programs):
        if slowdowns and rank in slowdowns:
            made.define_device(rank, 0, *slowdowns[rank])
        for stream in (COMPUTE_STREAM, COMMUNICATION_STREAM):
            made.define_stream(rank, stream, 0)
        for tens in range(1, 100):
            made.define_kernel(rank, tens, tens * 10, 1)
        made.define_collective(rank, 1, 5, rank, 1, activity)
        made.feed(rank, program)
        made.close_rank(rank)
    made.advance()
    nodes = made.take_timeline()
    ends: dict[tuple[int, int], list[int]] = {}
    for rank, stream, end in zip(nodes.rank.tolist(), nodes.stream.tolist(), nodes.end_ns.tolist(), strict=True):
        ends.setdefault((rank, stream), []).append(end)
    return ends


# --- overlap


def test_a_kernel_is_slowed_while_its_device_communicates_and_no_longer() -> None:
    ends = run([collective() + kernel(0, 90), collective()], {0: (2.0, 1.0)})
    assert ends[0, COMMUNICATION_STREAM] == [1000]
    assert ends[0, COMPUTE_STREAM] == [1000 + (900 - 500)]


def test_communication_is_slowed_by_a_kernel_on_any_of_its_devices() -> None:
    ends = run([collective(), collective() + kernel(0, 30)], {1: (1.0, 2.0)})
    assert ends[0, COMMUNICATION_STREAM] == ends[1, COMMUNICATION_STREAM] == [300 + (1000 - 150)]
    assert ends[1, COMPUTE_STREAM] == [300]


def test_the_slowest_device_sets_the_pace() -> None:
    programs = [collective() + kernel(0, 40), collective() + kernel(0, 20)]
    ends = run(programs, {0: (1.0, 2.0), 1: (1.0, 4.0)})
    assert ends[0, COMMUNICATION_STREAM] == [400 + (1000 - 200 // 4 - 200 // 2)]


def test_each_slows_the_other() -> None:
    ends = run([collective() + kernel(0, 30), collective()], {0: (2.0, 2.0)})
    assert ends[0, COMPUTE_STREAM] == [600]  # communicating all the while
    assert ends[0, COMMUNICATION_STREAM] == [600 + (1000 - 300)]


def test_kernels_without_a_gap_are_one_stretch() -> None:
    one = run([collective() + kernel(0, 30), collective()], {0: (1.25, 1.5)})
    three = run([collective() + 3 * kernel(0, 10), collective()], {0: (1.25, 1.5)})
    assert three[0, COMMUNICATION_STREAM] == one[0, COMMUNICATION_STREAM]
    assert three[0, COMPUTE_STREAM][-1] == one[0, COMPUTE_STREAM][-1]


def test_latency_counts_as_communication() -> None:
    ends = run([collective() + kernel(0, 30), collective()], {0: (2.0, 1.0)}, volume_bytes=0, latency_ns=500)
    assert ends[0, COMMUNICATION_STREAM] == [500]
    assert ends[0, COMPUTE_STREAM] == [500 + (300 - 250)]


def test_waiting_for_members_does_not() -> None:
    ends = run([collective() + kernel(0, 30), collective(200)], {0: (2.0, 1.0)})
    assert ends[0, COMMUNICATION_STREAM] == [1200]
    assert ends[0, COMPUTE_STREAM] == [200 + 2 * (300 - 200)]


def test_kernels_issued_before_the_first_communication_are_not_slowed() -> None:
    ends = run([kernel(0, 90) + collective(), collective()], {0: (2.0, 2.0)})
    assert ends[0, COMPUTE_STREAM] == [900]
    assert ends[0, COMMUNICATION_STREAM] == [1000]


def test_a_communicator_of_one_does_not_count() -> None:
    ends = run([collective() + kernel(0, 90)], {0: (2.0, 2.0)})
    assert ends == {(0, COMPUTE_STREAM): [900], (0, COMMUNICATION_STREAM): [1000]}


# --- links


def test_a_links_capacity_changes() -> None:
    network = one_link()
    network.change_capacity(400, 0, GB_PER_S / 2)
    network.change_capacity(1000, 0, GB_PER_S * 2)
    ends = run([collective(), collective()], network=network)
    assert ends[0, COMMUNICATION_STREAM] == [1000 + (1000 - 400 - 300) // 2]


def test_two_links_change_at_once_by_different_amounts() -> None:
    """Each carries a flow of its own that did not fill it: what is known of one says nothing of the other."""
    network = Network()
    for link, share in enumerate((2, 4)):
        network.add_link(GB_PER_S)
        network.change_capacity(400, link, GB_PER_S / share)
    made = Simulation(2, network)
    for link in (0, 1):
        made.define_comm(link, 2)
        for rank in (0, 1):
            made.define_stream(rank, link, 0)
            made.define_collective(rank, 1 + link, link, rank, 1, Activity(1000, 0, [(link, 1.0)], 0.9 * GB_PER_S))
            made.feed(rank, record(COLLECTIVE, 0, link, 1 + link))
    for rank in (0, 1):
        made.close_rank(rank)
    made.advance()
    assert sorted(set(made.take_timeline().end_ns.tolist())) == [400 + 2 * 640, 400 + 4 * 640]


def test_background_traffic_takes_its_share_while_it_lasts() -> None:
    network = one_link()
    network.add_background([(0, 1.0)], INFINITE, 200, 600)
    ends = run([collective(), collective()], network=network)
    assert ends[0, COMMUNICATION_STREAM] == [600 + (1000 - 200 - 200)]


def test_background_traffic_takes_no_more_than_its_greatest_rate() -> None:
    network = one_link()
    network.add_background([(0, 1.0)], GB_PER_S / 4, 200, 600)
    ends = run([collective(), collective()], network=network)
    assert ends[0, COMMUNICATION_STREAM] == [600 + (1000 - 200 - 300)]


# --- refusals


def test_slowdowns_that_make_no_sense_are_refused() -> None:
    made = Simulation(1, Network())
    for factor in (0.5, INFINITE, float("nan")):
        with pytest.raises(ValueError, match="slowdown"):
            made.define_device(0, 0, factor, 1.0)
    made.define_stream(0, 1, 0)
    with pytest.raises(ValueError, match="has streams already"):
        made.define_device(0, 0, 2.0, 1.0)
    made.define_device(0, 1, 2.0, 1.0)
    with pytest.raises(ValueError, match="defined already"):
        made.define_device(0, 1, 3.0, 1.0)


def test_changes_and_traffic_that_make_no_sense_are_refused() -> None:
    network = one_link()
    with pytest.raises(ValueError, match="link 1 does not exist"):
        network.change_capacity(0, 1, GB_PER_S)
    with pytest.raises(ValueError, match="capacity is 0"):
        network.change_capacity(0, 0, 0.0)
    with pytest.raises(ValueError, match="a time of -1 ns"):
        network.change_capacity(-1, 0, GB_PER_S)
    with pytest.raises(ValueError, match="on no link"):
        network.add_background([], INFINITE, 0, 1)
    with pytest.raises(ValueError, match="link 7 does not exist"):
        network.add_background([(7, 1.0)], INFINITE, 0, 1)
    with pytest.raises(ValueError, match="hint: it must stop after it starts"):
        network.add_background([(0, 1.0)], INFINITE, 5, 5)


# --- kernels on several streams


def ends_of_kernels(shares: tuple[int, int], *, defined: bool = True) -> list[int]:
    """Of two kernels of 1,000 ns that begin at 0 and 100 on two streams."""
    made = Simulation(1, one_link())
    if defined:
        made.define_device(0, 0, 1.0, 1.0)
    made.define_stream(0, 0, 0)
    made.define_stream(0, 1, 0)
    for number, share in enumerate(shares, 1):
        made.define_kernel(0, number, 1000, 1, share)
    made.define_kernel(0, 3, 1, 1, 1)  # from here on, both streams have kernels
    small = record(KERNEL, 0, 0, 3) + record(KERNEL, 0, 1, 3)
    made.feed(0, small + record(KERNEL, 1, 0, 1) + record(KERNEL, 101, 1, 2))
    made.close_rank(0)
    made.advance()
    return sorted(made.take_timeline().end_ns.tolist())[2:]


def test_kernels_that_fill_a_device_share_it() -> None:
    # For 100 ns the first is alone; then each runs at half its speed until the first has ended.
    assert ends_of_kernels((1024, 1024)) == [1 + 100 + 2 * 900, 1 + 2000]


def test_kernels_that_fit_side_by_side_do_not_slow_each_other() -> None:
    assert ends_of_kernels((512, 512)) == [1001, 1101]
    assert ends_of_kernels((1024, 0)) == [1001, 1101]
    assert ends_of_kernels((1024, 1024), defined=False) == [1001, 1101]


def test_each_is_slower_by_what_they_fill_together() -> None:
    first, second = ends_of_kernels((1024, 512))
    assert first == 1 + 100 + 900 * 3 // 2
    assert second == first + 1000 - 900
