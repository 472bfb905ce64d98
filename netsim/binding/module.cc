// phantora_netsim._core. What each function means is said in _core.pyi.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "activity.h"
#include "fabric.h"
#include "program.h"
#include "simulation.h"

namespace py = pybind11;

namespace phantora::netsim {
namespace {

struct SharedActivity {
  std::shared_ptr<const Activity> shared;
};

// The simulation behind a lock: its methods run without the GIL, so that other threads may call at the same time.
class Guarded {
 public:
  Guarded(int64_t ranks, const Fabric& fabric, int64_t launch_queue_depth)
      : simulation_(ranks, fabric, launch_queue_depth) {}

  template <class Method>
  auto locked(Method method) {
    const py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return method(simulation_);
  }

 private:
  std::mutex mutex_;
  Simulation simulation_;
};

// A column of a table: one member (or a function) of each item.
template <class T, class Item, class Get>
py::array_t<T> column(const std::vector<Item>& items, Get get) {
  py::array_t<T> values(static_cast<py::ssize_t>(items.size()));
  T* out = values.mutable_data();
  for (const Item& item : items) *out++ = static_cast<T>(get(item));
  return values;
}

struct TimelineColumns {
  py::array_t<int32_t> rank, device;
  py::array_t<uint32_t> stream;
  py::array_t<uint8_t> kind;
  py::array_t<uint32_t> definition;
  py::array_t<uint8_t> later;
  py::array_t<int64_t> issue_ns, start_ns, end_ns;
};

TimelineColumns timeline_columns(const std::vector<Node>& nodes) {
  return {column<int32_t>(nodes, [](const Node& node) { return node.rank; }),
          column<int32_t>(nodes, [](const Node& node) { return node.device; }),
          column<uint32_t>(nodes, [](const Node& node) { return node.stream; }),
          column<uint8_t>(nodes, [](const Node& node) { return node.kind; }),
          column<uint32_t>(nodes, [](const Node& node) { return node.definition; }),
          column<uint8_t>(nodes, [](const Node& node) { return node.later; }),
          column<int64_t>(nodes, [](const Node& node) { return node.issue; }),
          column<int64_t>(nodes, [](const Node& node) { return node.start; }),
          column<int64_t>(nodes, [](const Node& node) { return node.end; })};
}

struct MarkColumns {
  py::array_t<int32_t> rank, device;
  py::array_t<uint8_t> kind;
  py::array_t<int64_t> time_ns;
  py::array_t<uint64_t> a, b;
};

MarkColumns mark_columns(const std::vector<Mark>& marks) {
  return {column<int32_t>(marks, [](const Mark& mark) { return mark.rank; }),
          column<int32_t>(marks, [](const Mark& mark) { return mark.device; }),
          column<uint8_t>(marks, [](const Mark& mark) { return mark.kind; }),
          column<int64_t>(marks, [](const Mark& mark) { return mark.time; }),
          column<uint64_t>(marks, [](const Mark& mark) { return mark.a; }),
          column<uint64_t>(marks, [](const Mark& mark) { return mark.b; })};
}

// Keys are compared, never reckoned with: 64 bits of any integer do.
uint64_t low_bits(const py::int_& key) {
  const uint64_t bits = PyLong_AsUnsignedLongLongMask(key.ptr());
  if (PyErr_Occurred()) throw py::error_already_set();
  return bits;
}

Call collective(int64_t member, const py::int_& key, const SharedActivity& activity) {
  Call call;
  call.member = static_cast<uint32_t>(member);
  call.key = low_bits(key);
  call.activity = activity.shared;
  return call;
}

using Sends = std::vector<std::tuple<uint32_t, uint64_t, SharedActivity>>;
using Receives = std::vector<std::pair<uint32_t, uint64_t>>;

Call transfers(uint32_t member, const Sends& sends, const Receives& receives, bool eager) {
  Call call;
  call.member = member;
  for (const auto& [peer, key, activity] : sends) call.sends.push_back({peer, key, activity.shared});
  for (const auto& [peer, key] : receives) call.receives.push_back({peer, key});
  call.eager = eager;
  return call;
}

void bind_results(py::module_& module) {
  py::class_<Reply>(module, "Reply")
      .def_property_readonly("rank", [](const Reply& reply) { return static_cast<uint32_t>(reply.rank); })
      .def_readonly("request", &Reply::request)
      .def_readonly("value", &Reply::value)
      .def_readonly("speculated", &Reply::speculated);
  py::class_<Correction>(module, "Correction")
      .def_property_readonly("rank",
                             [](const Correction& correction) { return static_cast<uint32_t>(correction.rank); })
      .def_readonly("request", &Correction::request)
      .def_readonly("value", &Correction::value);
  py::class_<TimelineColumns>(module, "Timeline")
      .def_readonly("rank", &TimelineColumns::rank)
      .def_readonly("device", &TimelineColumns::device)
      .def_readonly("stream", &TimelineColumns::stream)
      .def_readonly("kind", &TimelineColumns::kind)
      .def_readonly("definition", &TimelineColumns::definition)
      .def_readonly("later", &TimelineColumns::later)
      .def_readonly("issue_ns", &TimelineColumns::issue_ns)
      .def_readonly("start_ns", &TimelineColumns::start_ns)
      .def_readonly("end_ns", &TimelineColumns::end_ns);
  py::class_<MarkColumns>(module, "Marks")
      .def_readonly("rank", &MarkColumns::rank)
      .def_readonly("device", &MarkColumns::device)
      .def_readonly("kind", &MarkColumns::kind)
      .def_readonly("time_ns", &MarkColumns::time_ns)
      .def_readonly("a", &MarkColumns::a)
      .def_readonly("b", &MarkColumns::b);
}

const char* name(Obstacle::Kind kind) {
  switch (kind) {
    case Obstacle::Kind::collective:
      return "collective";
    case Obstacle::Kind::send:
      return "send";
    case Obstacle::Kind::receive:
      return "receive";
    case Obstacle::Kind::transfers:
      return "transfers";
    case Obstacle::Kind::kernel:
      return "kernel";
    case Obstacle::Kind::host_group:
      return "host_group";
    case Obstacle::Kind::recording:
      return "recording";
    case Obstacle::Kind::lane:
      return "lane";
    case Obstacle::Kind::chain:
      break;
  }
  return "chain";
}

// Sides as lists of (member, rank, definition).
auto sides(const Disagreement& disagreement) {
  std::vector<std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>> out;
  for (const auto& side : disagreement.sides) {
    auto& calls = out.emplace_back();
    for (const auto& [member, rank, definition] : side) {
      calls.emplace_back(member, static_cast<uint32_t>(rank), definition);
    }
  }
  return out;
}

void bind_diagnosis(py::module_& module) {
  py::class_<Obstacle>(module, "Obstacle")
      .def_property_readonly("kind", [](const Obstacle& obstacle) { return name(obstacle.kind); })
      .def_readonly("name", &Obstacle::name)
      .def_readonly("sequence", &Obstacle::sequence)
      .def_readonly("definition", &Obstacle::definition)
      .def_readonly("member", &Obstacle::member)
      .def_readonly("peer", &Obstacle::peer)
      .def_readonly("mismatched", &Obstacle::mismatched)
      .def_readonly("absent", &Obstacle::absent)
      .def_readonly("busy", &Obstacle::busy)
      .def_readonly("gone", &Obstacle::gone)
      .def_readonly("unheard", &Obstacle::unheard);
  py::class_<Waiting>(module, "Waiting")
      .def_property_readonly("rank", [](const Waiting& waiting) { return static_cast<uint32_t>(waiting.rank); })
      .def_property_readonly("lane", [](const Waiting& waiting) { return static_cast<uint32_t>(waiting.lane); })
      .def_readonly("request", &Waiting::request)
      .def_readonly("launches", &Waiting::launches)
      .def_readonly("since_ns", &Waiting::since)
      .def_readonly("obstacle", &Waiting::obstacle);
  py::class_<Disagreement>(module, "Disagreement")
      .def_readonly("comm", &Disagreement::comm)
      .def_readonly("sequence", &Disagreement::sequence)
      .def_readonly("is_message", &Disagreement::is_message)
      .def_property_readonly("sides", sides);
}

void bind_network(py::module_& module) {
  py::class_<Fabric>(module, "Network")
      .def(py::init<>())
      .def("add_link", &Fabric::add_link, py::arg("capacity_bytes_per_s"))
      .def("change_capacity", &Fabric::change_capacity, py::arg("time_ns"), py::arg("link"),
           py::arg("capacity_bytes_per_s"))
      .def("add_background", &Fabric::add_background, py::arg("links"), py::arg("max_rate_bytes_per_s"),
           py::arg("start_ns"), py::arg("stop_ns"));
  py::class_<SharedActivity>(module, "Activity")
      .def(py::init([](int64_t volume_bytes, int64_t latency_ns, const std::vector<std::pair<int64_t, double>>& links,
                       double max_rate_bytes_per_s) {
             return SharedActivity{std::make_shared<const Activity>(
                 make_activity(volume_bytes, latency_ns, links, max_rate_bytes_per_s))};
           }),
           py::arg("volume_bytes"), py::arg("latency_ns"), py::arg("links"),
           py::arg("max_rate_bytes_per_s") = std::numeric_limits<double>::infinity());
}

void bind_definitions(py::class_<Guarded>& simulation) {
  simulation
      .def(
          "define_device",
          [](Guarded& self, int64_t rank, int64_t device, double compute_slowdown, double communication_slowdown) {
            self.locked([&](Simulation& simulation) {
              simulation.define_device(rank, device, {compute_slowdown, communication_slowdown});
            });
          },
          py::arg("rank"), py::arg("device"), py::arg("compute_slowdown"), py::arg("communication_slowdown"))
      .def(
          "define_stream",
          [](Guarded& self, int64_t rank, int64_t stream, int64_t device) {
            self.locked([&](Simulation& simulation) { simulation.define_stream(rank, stream, device); });
          },
          py::arg("rank"), py::arg("stream"), py::arg("device"))
      .def(
          "define_kernel",
          [](Guarded& self, int64_t rank, int64_t signature, int64_t duration_ns, int64_t later_ns, uint16_t share) {
            self.locked([&](Simulation& simulation) {
              simulation.define_kernel(rank, signature, {duration_ns, later_ns, share});
            });
          },
          py::arg("rank"), py::arg("signature"), py::arg("duration_ns"), py::arg("later_ns"), py::arg("share") = 0)
      .def(
          "define_comm",
          [](Guarded& self, int64_t comm, int64_t size) {
            self.locked([&](Simulation& simulation) { simulation.define_comm(comm, size); });
          },
          py::arg("comm"), py::arg("size"))
      .def(
          "define_collective",
          [](Guarded& self, int64_t rank, int64_t definition, int64_t comm, uint32_t member, const py::int_& key,
             const SharedActivity& activity) {
            Call call = collective(member, key, activity);
            self.locked(
                [&](Simulation& simulation) { simulation.define_call(rank, definition, comm, std::move(call)); });
          },
          py::arg("rank"), py::arg("definition"), py::arg("comm"), py::arg("member"), py::arg("key"),
          py::arg("activity"))
      .def(
          "define_group",
          [](Guarded& self, int64_t rank, int64_t definition, int64_t comm, uint32_t member, const Sends& sends,
             const Receives& receives, bool eager) {
            Call call = transfers(member, sends, receives, eager);
            self.locked(
                [&](Simulation& simulation) { simulation.define_call(rank, definition, comm, std::move(call)); });
          },
          py::arg("rank"), py::arg("definition"), py::arg("comm"), py::arg("member"), py::arg("sends"),
          py::arg("receives"), py::arg("eager") = false)
      .def(
          "define_abort",
          [](Guarded& self, int64_t rank, int64_t definition, int64_t comm, int64_t member) {
            self.locked([&](Simulation& simulation) { simulation.define_abort(rank, definition, comm, member); });
          },
          py::arg("rank"), py::arg("definition"), py::arg("comm"), py::arg("member"))
      .def(
          "define_host_group",
          [](Guarded& self, int64_t rank, int64_t definition, int64_t group, int64_t size, int64_t cost_ns) {
            self.locked(
                [&](Simulation& simulation) { simulation.define_host_group(rank, definition, group, size, cost_ns); });
          },
          py::arg("rank"), py::arg("definition"), py::arg("group"), py::arg("size"), py::arg("cost_ns"));
}

void bind_progress(py::class_<Guarded>& simulation) {
  simulation
      .def(
          "feed",
          [](Guarded& self, int64_t rank, const py::bytes& batch) {
            const std::string_view bytes = batch;
            self.locked([&](Simulation& simulation) { simulation.feed(rank, bytes); });
          },
          py::arg("rank"), py::arg("batch"))
      .def(
          "close_rank",
          [](Guarded& self, int64_t rank) {
            self.locked([&](Simulation& simulation) { simulation.close_rank(rank); });
          },
          py::arg("rank"))
      .def("advance", [](Guarded& self) { return self.locked([](Simulation& s) { return s.advance(); }); })
      .def("speculate", [](Guarded& self) { return self.locked([](Simulation& s) { return s.speculate(); }); })
      .def("take_corrections",
           [](Guarded& self) { return self.locked([](Simulation& s) { return s.take_corrections(); }); })
      .def("waiting", [](Guarded& self) { return self.locked([](Simulation& s) { return s.waiting(); }); })
      .def(
          "held_up",
          [](Guarded& self, int64_t rank) { return self.locked([&](Simulation& s) { return s.held_up(rank); }); },
          py::arg("rank"))
      .def_property_readonly("disagrees",
                             [](Guarded& self) { return self.locked([](Simulation& s) { return s.disagrees(); }); })
      .def("disagreements", [](Guarded& self) { return self.locked([](Simulation& s) { return s.disagreements(); }); })
      .def("take_timeline",
           [](Guarded& self) { return timeline_columns(self.locked([](Simulation& s) { return s.take_nodes(); })); })
      .def("take_marks",
           [](Guarded& self) { return mark_columns(self.locked([](Simulation& s) { return s.take_marks(); })); })
      .def(
          "clock_ns",
          [](Guarded& self, int64_t rank) { return self.locked([&](Simulation& s) { return s.clock(rank); }); },
          py::arg("rank"))
      .def_property_readonly("committed_ns",
                             [](Guarded& self) { return self.locked([](Simulation& s) { return s.committed(); }); })
      .def_property_readonly("corrected_replies", [](Guarded& self) {
        return self.locked([](Simulation& s) { return s.corrected_replies(); });
      });
}

}  // namespace
}  // namespace phantora::netsim

PYBIND11_MODULE(_core, module) {
  using namespace phantora::netsim;
  module.doc() = "The compiled simulator core: event graph, flow network, horizon, commit and speculation.";
  module.attr("RECORD_BYTES") = sizeof(Record);
  bind_results(module);
  bind_diagnosis(module);
  bind_network(module);
  py::class_<Guarded> simulation(module, "Simulation");
  simulation.def(py::init<int64_t, const Fabric&, int64_t>(), py::arg("ranks"), py::arg("network"),
                 py::arg("launch_queue_depth") = 1024);
  bind_definitions(simulation);
  bind_progress(simulation);
}
