#include "core/job/typing.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace dshang::job {

std::size_t typing_distance(std::string_view a, std::string_view b, std::size_t limit) {
  std::size_t longer = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  if (longer > limit) return longer;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t exchanged = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, exchanged});
    }
    std::size_t least = *std::min_element(row.begin(), row.end());
    if (least > limit) return least;
  }
  return row[b.size()];
}

}  // namespace dshang::job
