#include "core/job/crossed.h"
#include "core/job/shifted.h"
#include "made.h"

using namespace dshang::job;

namespace {

const std::string kOther = "call all_gather 100 bf16 site=\"t.py:1 main\"\n";

std::string at(char line) {
  return std::string("call all_reduce 1 f32 sum site=\"m.py:") + std::to_string(line) + " f\"\n";
}

// One step for each word: a gather, then a reduction from a line for each letter.
std::string steps(const std::vector<std::string>& words, bool marked = true) {
  std::string all;
  int n = 0;
  for (const std::string& word : words) {
    if (marked) all += "visit step " + std::to_string(++n) + "\n";
    all += kOther;
    for (char letter : word) all += at(letter);
  }
  return all + (marked ? "visit step " + std::to_string(n + 1) + "\n" : "") + kOther;
}

template <typename Find>
auto found_in(Find find, const std::string& a, const std::string& b, const std::string& c) {
  static std::vector<std::unique_ptr<Job>> jobs;  // findings point into them
  int world = c.empty() ? 2 : 3;
  jobs.push_back(made(rank(0, world, a) + rank(1, world, b) + (c.empty() ? "" : rank(2, world, c))));
  JobView view = make_view(*jobs.back());
  return find(view, view.comms[0]);
}

std::optional<Crossing> crossing(const std::string& a, const std::string& b, const std::string& c = "") {
  return found_in(find_crossing, a, b, c);
}

// Reductions from a line for each letter, and nothing else.
std::optional<Shift> shift(const std::string& a, const std::string& b, const std::string& c = "") {
  auto text = [](const std::string& word) {
    std::string all;
    for (char letter : word) all += at(letter);
    return all;
  };
  return found_in(find_shift, text(a), text(b), c.empty() ? "" : text(c));
}

}  // namespace

TEST_CASE("two lines in another order from some step on are crossed", "[crossed]") {
  auto found = crossing(steps({"ab", "ab", "ab", "ab"}), steps({"ab", "ab", "ba", "ba"}),
                        steps({"ab", "ab", "ab", "ab"}));
  REQUIRE(found);
  CHECK(found->first == 8);
  CHECK(found->suspects == std::vector<Rank>{1});
  CHECK(found->stretches == 2);
}

TEST_CASE("without a majority the rank is suspected that changed its own order", "[crossed]") {
  auto found = crossing(steps({"ab", "ab", "ab"}), steps({"ab", "ab", "ba"}));
  REQUIRE(found);
  CHECK(found->suspects == std::vector<Rank>{1});
  found = crossing(steps({"ab", "ab", "ab"}), steps({"ba", "ba", "ba"}));
  REQUIRE(found);
  CHECK(found->suspects.empty());
}

TEST_CASE("three in a circle are crossed", "[crossed]") {
  CHECK(crossing(steps({"abc", "abc", "abc"}), steps({"abc", "abc", "bca"})));
}

TEST_CASE("lines that stand for each other are healthy", "[crossed]") {
  CHECK_FALSE(crossing(steps({"a", "a", "a"}), steps({"b", "b", "b"})));  // a root and its receivers
  CHECK_FALSE(
      crossing(steps({"a", "b", "a", "b"}), steps({"b", "a", "b", "a"})));  // a dummy branch, in other steps
  CHECK_FALSE(crossing(steps({"ab", "aa", "ab", "bb"}), steps({"ab", "ba", "ba", "ab"})));  // twice in a step
}

TEST_CASE("less than three stretches prove nothing", "[crossed]") {
  CHECK_FALSE(crossing(steps({"ab"}), steps({"ba"})));
  CHECK_FALSE(crossing(steps({"ab", "ab"}), steps({"ab", "ba"})));
}

TEST_CASE("without steps only runs of equal calls with others around them count", "[crossed]") {
  CHECK(crossing(steps({"ab", "ab", "ab"}, false), steps({"ab", "ab", "ba"}, false)));
  std::string turns_a, turns_b;
  for (int i = 0; i < 6; ++i) turns_a += at('a') + at('b'), turns_b += at('b') + at('a');
  CHECK_FALSE(crossing(turns_a, turns_b));
}

TEST_CASE("a call more in a row of equal calls shifts all that follow", "[crossed]") {
  std::string rounds = repeat(8, "abc");
  auto found =
      shift(rounds + repeat(20, "abc"), rounds + "x" + repeat(20, "abc"), rounds + repeat(20, "abc"));
  REQUIRE(found);
  CHECK(found->first == 25);
  CHECK(found->by == 1);
  CHECK(found->suspects == std::vector<Rank>{1});
  CHECK_FALSE(found->ahead);
  found = shift(rounds + repeat(20, "abc"), rounds + "bc" + repeat(20, "abc"), rounds + repeat(20, "abc"));
  REQUIRE(found);
  CHECK(found->ahead);
  found = shift(rounds + "x" + repeat(20, "abc"), rounds + repeat(20, "abc"), rounds + repeat(20, "abc"));
  REQUIRE(found);
  CHECK(found->suspects == std::vector<Rank>{0});
  CHECK_FALSE(found->ahead);
}

TEST_CASE("a dummy branch that happens to repeat another rank's choices a round later is not shifted",
          "[crossed]") {
  std::string choices = "xyyxyxxyxyyxxyxyyxyxxyxyyxxy", a, b;
  for (std::size_t i = 1; i < choices.size(); ++i) {
    a += std::string(1, choices[i]) + "tuvw";
    b += std::string(1, choices[i < 6 ? i : i - 1]) + "tuvw";
  }
  CHECK_FALSE(shift(a, b));
}

TEST_CASE("what was never alike, or comes from two lines in turns, is not shifted", "[crossed]") {
  CHECK_FALSE(shift(repeat(30, "abc"), repeat(30, "bca")));
  CHECK_FALSE(shift(repeat(30, "ab"), repeat(12, "ab") + repeat(18, "ba")));
  CHECK_FALSE(shift(repeat(30, "abc"), repeat(10, "abc") + "x" + repeat(9, "bca") + repeat(10, "abc")));
  CHECK_FALSE(shift(repeat(30, "abc"), repeat(30, "abc")));
}
