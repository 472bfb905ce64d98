#include "phantora/config.h"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <system_error>

#include "phantora/environment.h"
#include "phantora/recorder.h"

namespace phantora {

namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

template <typename Number>
Number parse_number(const std::string& what, const std::string& text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(what + " is not a whole number of the allowed size: \"" + text + "\"",
         "machine.conf and the environment of a rank are written by `phantora run`; start the program with it");
  }
  return value;
}

HostPolicy parse_policy(const std::string& text) {
  if (text == "modelled") return HostPolicy::modelled;
  if (text == "measured") return HostPolicy::measured;
  if (text == "zero") return HostPolicy::zero;
  fail("host.policy in machine.conf is \"" + text + "\"", "it must be modelled, measured or zero");
}

// Sets one field of a Config from the text after "key =".
using Setter = std::function<void(Config&, const std::string& key, const std::string& text)>;

template <typename Number>
Setter number(Number Config::* field) {
  return [field](Config& config, const std::string& key, const std::string& text) {
    config.*field = parse_number<Number>(key + " in machine.conf", text);
  };
}

const std::map<std::string, Setter, std::less<>>& setters() {
  static const std::map<std::string, Setter, std::less<>> table = {
      {"device.name", [](Config& config, const std::string&, const std::string& text) { config.device_name = text; }},
      {"device.count", number(&Config::device_count)},
      {"device.memory_bytes", number(&Config::memory_bytes)},
      {"device.context_bytes", number(&Config::context_bytes)},
      {"device.sm_count", number(&Config::sm_count)},
      {"device.cc_major", number(&Config::cc_major)},
      {"device.cc_minor", number(&Config::cc_minor)},
      {"device.l2_bytes", number(&Config::l2_bytes)},
      {"device.hbm_bytes_per_s", number(&Config::hbm_bytes_per_s)},
      {"device.clock_khz", number(&Config::clock_khz)},
      {"device.shared_per_block_optin", number(&Config::shared_per_block_optin)},
      {"device.shared_per_sm", number(&Config::shared_per_sm)},
      {"device.nvlink_count", number(&Config::nvlink_count)},
      {"device.multicast", number(&Config::multicast)},
      {"host.policy",
       [](Config& config, const std::string&, const std::string& text) { config.host_policy = parse_policy(text); }},
      {"host.dispatch_ns", number(&Config::dispatch_ns)},
      {"host.launch_ns", number(&Config::launch_ns)},
      {"host.call_ns", number(&Config::call_ns)},
      {"host.sync_ns", number(&Config::sync_ns)},
      {"value.limit_bytes", number(&Config::value_limit_bytes)},
      {"value.copy_limit_bytes", number(&Config::value_copy_limit_bytes)},
      {"value.unknown_read_limit", number(&Config::value_unknown_read_limit)},
      {"value.loop_limit", number(&Config::value_loop_limit)},
      {"job.epoch_ns", number(&Config::epoch_ns)},
  };
  return table;
}

std::string trimmed(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

void read_line(Config& config, const std::string& line) {
  std::string content = trimmed(line);
  if (content.empty() || content[0] == '#') return;
  size_t equals = content.find('=');
  std::string key = trimmed(content.substr(0, equals));
  auto setter = setters().find(key);
  if (equals == std::string::npos || setter == setters().end()) {
    fail("machine.conf has a line that is not understood: \"" + content + "\"",
         "lines are `key = value`, keys those of docs/protocol.md; is the run folder of another version of phantora?");
  }
  setter->second(config, key, trimmed(content.substr(equals + 1)));
}

void read_machine(Config& config) {
  std::string path = config.run_dir + "/machine.conf";
  std::ifstream file(path);
  if (!file) {
    fail("cannot read " + path,
         "the run folder is made by `phantora run` and removed at its end; start the job with it");
  }
  for (std::string line; std::getline(file, line);) read_line(config, line);
}

void check_machine(const Config& config) {
  struct Need {
    const char* key;
    bool met;
  };
  const Need needs[] = {
      {"device.name", !config.device_name.empty()},
      {"device.count", config.device_count > 0},
      {"device.memory_bytes", config.memory_bytes > 0},
      {"device.sm_count", config.sm_count > 0},
      {"device.cc_major", config.cc_major > 0},
      {"device.context_bytes (less than device.memory_bytes)", config.context_bytes < config.memory_bytes},
  };
  for (const Need& need : needs) {
    if (!need.met) fail(std::string("machine.conf lacks a sound ") + need.key, "check the GPU in the cluster file");
  }
}

int from_environment(const char* name, int otherwise) {
  std::string text = from_environment(name);
  return text.empty() ? otherwise : parse_number<int>(name, text);
}

Config load() {
  Config config;
  config.run_dir = from_environment(environment::run_dir);
  if (config.run_dir.empty()) {
    fail(std::string(environment::run_dir) + " is not set: no emulated machine to run on",
         "start the program with `phantora run --cluster NAME -- COMMAND`");
  }
  config.rank = from_environment(environment::rank, 0);
  config.node = from_environment(environment::node, 0);
  config.local_rank = from_environment(environment::local_rank, 0);
  config.world_size = from_environment(environment::world_size, 0);
  config.ranks_per_node = from_environment(environment::ranks_per_node, 0);
  config.hostname = from_environment(environment::hostname);
  std::string sink = from_environment(environment::sink);
  if (!sink.empty() && sink != "socket" && sink != "null") {
    fail(std::string(environment::sink) + " is \"" + sink + "\"", "it must be socket or null");
  }
  config.null_sink = sink == "null";
  read_machine(config);
  check_machine(config);
  return config;
}

}  // namespace

const Config& config() {
  static const Config* loaded = new Config(load());  // never destroyed: used by exit handlers
  return *loaded;
}

}  // namespace phantora
