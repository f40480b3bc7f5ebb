// Texts in pieces, and words that are nearly others.
#include <map>

#include "catch.h"
#include "core/job/long_text.h"
#include "core/job/typing.h"

namespace dshang::job {
namespace {

FactLookup lookup(const std::map<std::string, std::string>& facts) {
  return [&facts](const std::string& key) -> const std::string& {
    static const std::string kNone;
    auto found = facts.find(key);
    return found == facts.end() ? kNone : found->second;
  };
}

TEST_CASE("a text is put together from its pieces, or not told", "[long_text]") {
  std::map<std::string, std::string> facts = {
      {"whole", "{}"},       {"cut", "cut {\"a"}, {"two", "pieces 2"},
      {"two/1", "{\"a\": "}, {"two/2", "1}"},     {"two/3", "of another"},
      {"gone", "pieces 3"},  {"gone/1", "a"},     {"gone/3", "c"}};
  CHECK(whole_text("whole", lookup(facts)) == "{}");
  CHECK(whole_text("two", lookup(facts)) == "{\"a\": 1}");
  CHECK(whole_text("gone", lookup(facts)).empty());
  CHECK(whole_text("none", lookup(facts)).empty());
  CHECK(whole_text("cut", lookup(facts)).empty());
  CHECK(cut_text("cut", lookup(facts)) == "{\"a");
  CHECK(cut_text("two", lookup(facts)).empty());
}

TEST_CASE("a head that counts no pieces is a text", "[long_text]") {
  for (const char* text :
       {"pieces ", "pieces two", "pieces 0", "pieces -1", "pieces 2 of it", "pieces 99999999999"}) {
    std::map<std::string, std::string> facts = {{"key", text}};
    CHECK(whole_text("key", lookup(facts)) == text);
  }
}

TEST_CASE("distances are exact up to their limit, and above it behind", "[typing]") {
  const char* words[] = {"",     "a",  "gradient_clipping", "gradient_cliping", "zero_optimization",
                         "zero", "xyz"};
  for (const char* a : words) {
    for (const char* b : words) {
      std::size_t exact = typing_distance(a, b);
      CHECK(exact == typing_distance(b, a));
      for (std::size_t limit : {0, 1, 3, 10}) {
        std::size_t limited = typing_distance(a, b, limit);
        CHECK((exact <= limit ? limited == exact : limited > limit));
      }
    }
  }
  CHECK(typing_distance("gradient_cliping", "gradient_clipping") == 1);
}

}  // namespace
}  // namespace dshang::job
