// SimGrid on a problem of leaf_spine.py, its correction factors off. Reads the problem, prints the CPU seconds that it
// took and the time at which each message ended.
//
// Input: hosts, links, then a capacity (bytes/s) for each link; pairs, then for each source, target, number of links,
// links; latency (s); messages, then for each start (s), source, target, bytes.
#include <simgrid/s4u.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Message {
  double start;
  int source;
  int target;
  double bytes;
};

template <class T>
T read() {
  T value;
  std::cin >> value;
  return value;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  const int count = read<int>();
  std::vector<sg4::Host*> hosts;
  sg4::NetZone* zone = sg4::create_full_zone("fabric");
  for (int i = 0; i < count; ++i) hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9));
  std::vector<double> capacities(read<size_t>());
  for (double& capacity : capacities) std::cin >> capacity;
  std::vector<sg4::Link*> links;
  const auto make_links = [&](double latency) {
    for (size_t i = 0; i < capacities.size(); ++i) {
      // Every path has one up-link, which are the first.
      links.push_back(zone->create_link("l" + std::to_string(i), capacities[i]));
      links.back()->set_latency(i < hosts.size() ? latency : 0.0);
      links.back()->seal();
    }
  };
  const auto pairs = read<size_t>();
  std::vector<std::vector<int>> routes(pairs);
  for (auto& route : routes) {
    route = {read<int>(), read<int>()};
    for (int left = read<int>(); left > 0; --left) route.push_back(read<int>());
  }
  make_links(read<double>());
  for (const auto& route : routes) {
    std::vector<sg4::LinkInRoute> path;
    for (size_t i = 2; i < route.size(); ++i) path.emplace_back(links[route[i]]);
    zone->add_route(hosts[route[0]]->get_netpoint(), hosts[route[1]]->get_netpoint(), nullptr, nullptr, path, false);
  }
  zone->seal();
  std::vector<Message> messages(read<size_t>());
  for (Message& message : messages) std::cin >> message.start >> message.source >> message.target >> message.bytes;
  std::vector<sg4::CommPtr> sent;
  sg4::Actor::create("sender", hosts[0], [&] {
    for (const Message& message : messages) {
      sg4::this_actor::sleep_until(message.start);
      sent.push_back(sg4::Comm::sendto_async(hosts[message.source], hosts[message.target], message.bytes));
    }
    for (const sg4::CommPtr& comm : sent) comm->wait();
  });
  const double started = cpu_seconds();
  engine.run();
  std::printf("%.6f\n", cpu_seconds() - started);
  for (const sg4::CommPtr& comm : sent) std::printf("%.12f\n", comm->get_finish_time());
}
