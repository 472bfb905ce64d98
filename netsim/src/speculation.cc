#include "speculation.h"

#include <algorithm>

namespace phantora::netsim {

std::vector<Answer> earliest_answers(World& guess, const std::function<bool(RankId, uint64_t)>& told) {
  guess.imagine_silence();
  std::vector<Answer> earliest;
  Time at = kNever;
  bool moves = true;
  while (moves && guess.state().frontier < at) {
    moves = guess.step();
    for (const Answer& answer : guess.take_answers()) {
      if (answer.at > at || told(answer.rank, answer.request)) continue;
      if (answer.at < at) earliest.clear();
      at = answer.at;
      earliest.push_back(answer);
    }
  }
  std::sort(earliest.begin(), earliest.end(), [](const Answer& x, const Answer& y) {
    return std::pair(x.rank, x.request) < std::pair(y.rank, y.request);
  });
  return earliest;
}

}  // namespace phantora::netsim
