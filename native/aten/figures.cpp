#include "figures.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "device_memory.h"
#include "overrides.h"
#include "phantora/recorder.h"

namespace phantora::aten {
namespace {

constexpr size_t reported_ops = 20;

struct OpFigure {
  std::string name;
  uint64_t count;
  uint64_t bytes;
};

// Plain data: by the time of the farewell torch's own objects may be gone.
struct Figures {
  MemoryPeaks peaks;
  uint64_t computed = 0, skipped = 0, impossible = 0;
  std::vector<OpFigure> largest_skipped;
  std::vector<OpFigure> not_computable;
};

Figures& figures() {
  static Figures* figures = new Figures;
  return *figures;
}

void keep_most(std::vector<OpFigure>& ops, uint64_t OpFigure::* key) {
  std::stable_sort(ops.begin(), ops.end(),
                   [key](auto& a, auto& b) { return a.*key != b.*key ? a.*key > b.*key : a.name < b.name; });
  if (ops.size() > reported_ops) ops.resize(reported_ops);
}

// Called at exit and by the farewell, whichever the order of exit handlers brings first: then torch's objects still
// live.
void collect() {
  static bool is_collected = false;
  if (std::exchange(is_collected, true)) return;
  Figures& f = figures();
  f.peaks = memory_peaks();
  for_each_operator([&f](const Operator& op) {
    f.computed += op.tally.computed;
    f.skipped += op.tally.skipped;
    f.impossible += op.tally.impossible;
    if (op.tally.skipped > 0) f.largest_skipped.push_back({op.name, op.tally.skipped, op.tally.largest_bytes});
    if (op.tally.impossible > 0) f.not_computable.push_back({op.name, op.tally.impossible, 0});
  });
  for (const OpFigure& op : f.not_computable)
    recorder::declare_guess("values of " + op.name + " are not computed, even of small tensors");
  keep_most(f.largest_skipped, &OpFigure::bytes);
  keep_most(f.not_computable, &OpFigure::count);
}

void pack_ops(wire::Pack& pack, const std::vector<OpFigure>& ops) {
  pack.array(static_cast<uint32_t>(ops.size()));
  for (const OpFigure& op : ops) {
    pack.map(3).text("op").text(op.name).text("count").integer(static_cast<int64_t>(op.count));
    pack.text("bytes").integer(static_cast<int64_t>(op.bytes));
  }
}

std::string packed(uint64_t number) { return wire::Pack().integer(static_cast<int64_t>(number)).str(); }

std::string packed_values(const Figures& f) {
  wire::Pack pack;
  pack.map(5).text("computed").integer(static_cast<int64_t>(f.computed));
  pack.text("skipped").integer(static_cast<int64_t>(f.skipped));
  pack.text("impossible").integer(static_cast<int64_t>(f.impossible));
  pack_ops(pack.text("largest_skipped"), f.largest_skipped);
  pack_ops(pack.text("not_computable"), f.not_computable);
  return pack.str();
}

}  // namespace

void report_at_exit() {
  std::atexit(collect);
  recorder::farewell([](auto contribute) {
    collect();
    collect();
    const Figures& f = figures();
    contribute("peak_allocated_bytes", packed(f.peaks.allocated_bytes));
    contribute("peak_reserved_bytes", packed(f.peaks.reserved_bytes));
    contribute("values", packed_values(f));
  });
}

}  // namespace phantora::aten
