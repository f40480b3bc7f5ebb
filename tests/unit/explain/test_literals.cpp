#include <random>
#include <set>

#include "catch.h"
#include "explain/catalogue.h"
#include "explain/explain.h"
#include "explain/literals.h"

using namespace dshang::explain;

namespace {

using Found = std::multiset<std::pair<std::size_t, std::size_t>>;

Found found_by(const Literals& literals, std::string_view text) {
  Found found;
  literals.search(text, [&](std::size_t at, std::size_t word) {
    found.emplace(at, word);
    return true;
  });
  return found;
}

Found found_plainly(const std::vector<std::string>& words, std::string_view text) {
  Found found;
  for (std::size_t word = 0; word < words.size(); ++word) {
    for (std::size_t at = text.find(words[word]); at != std::string_view::npos;
         at = text.find(words[word], at + 1))
      found.emplace(at, word);
  }
  return found;
}

}  // namespace

TEST_CASE("the literal of an expression stands in each of its matches") {
  CHECK(required_literal("plain text") == "plain text");
  CHECK(required_literal(R"(\d+ validation errors? for (A|B)$)") == " validation error");
  CHECK(required_literal(R"(fused_adam \.+ \[NO\])") == "fused_adam .");
  CHECK(required_literal(R"(abcd|efgh)").empty());
  CHECK(required_literal(R"(ab(cdefgh)?ijk)") == "ijk");
  CHECK(required_literal(R"(a{2}bcdef[xyz]+gh)") == "bcdef");
  CHECK(required_literal(R"([(\]]long [^)] sho)") == "long ");
  CHECK(required_literal(R"(x\S+ lon\*g)") == " lon*g");
}

TEST_CASE("every word is found at every place, whatever stands around it") {
  std::vector<std::string> words = {"loss", "lossy", "abab", "babab", "aaaa", "CUDA out of memory",
                                    "memo", "ry: a"};
  Literals literals(words);
  CHECK(found_by(literals, "").empty());
  CHECK(found_by(literals, "los").empty());
  CHECK(found_by(literals, "loss") == found_plainly(words, "loss"));
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    while (text.size() < 400) {
      if (random() % 4) {
        text += "abCUDloy: "[random() % 10];
      } else {
        text += words[random() % words.size()];
      }
    }
    REQUIRE(found_by(literals, text) == found_plainly(words, text));
  }
}

TEST_CASE("the search ends when it is told to") {
  Literals literals({"word"});
  int found = 0;
  literals.search("word word word", [&](std::size_t, std::size_t) { return ++found < 2; });
  CHECK(found == 2);
}

TEST_CASE("every expression of the catalogue has a word to be sought by") {
  for (const Entry* entry : Catalogue::shared().entries()) {
    for (const Pattern& pattern : entry->patterns) {
      INFO(entry->id << ": " << pattern.regex);
      CHECK(required_literal(pattern.regex).size() >= kShortestLiteral);
    }
    for (const char* hidden : entry->hides) CHECK(Catalogue::shared().find(hidden) != nullptr);
  }
}

TEST_CASE("an exception by itself is explained") {
  auto told = explain_text("RuntimeError: 'weight' must be 2-D");
  REQUIRE(told.size() == 1);
  CHECK(std::string(told[0].entry->id) == "X-02");
  CHECK(explain_text("RuntimeError: something of my own").empty());
  CHECK(explain_text("  File \"train.py\", line 1, in main\nTypeError: '>' not supported between instances "
                     "of 'str' and 'int'")
            .empty());
  told = explain_text(
      "  File \"/x/deepspeed/a.py\", line 1, in b\nTypeError: '>' not supported between instances of 'str' "
      "and 'int'");
  REQUIRE(told.size() == 1);
  CHECK(std::string(told[0].entry->id) == "X-05");
}
