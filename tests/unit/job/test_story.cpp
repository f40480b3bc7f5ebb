#include "core/job/story.h"
#include "made.h"

using namespace dshang::job;

namespace {

// Tokens from letters; capital letters reduce in the backward pass, '|' is a boundary (a step).
Tokens tokens(const std::string& text) {
  static Call call;
  Tokens all;
  for (char letter : text) {
    Token token;
    token.kind = letter == '|' ? Token::Kind::kStep : Token::Kind::kCall;
    token.key = static_cast<std::uint64_t>(letter);
    token.call = &call;
    token.place = token.line = static_cast<PlaceId>(letter);
    token.reduces = letter >= 'A' && letter <= 'Z';
    if (token.reduces) token.part = Part::kBackward;
    all.push_back(token);
  }
  return all;
}

std::string text(const Tokens& tokens) {
  std::string all;
  for (const Token& token : tokens) all += static_cast<char>(token.key);
  return all;
}

}  // namespace

TEST_CASE("what followed in earlier rounds is predicted", "[story]") {
  CHECK(text(predict(tokens("abcabcab"), 4)) == "cabc");
  CHECK(text(predict(tokens("xyzq"), 4)).empty());
  CHECK(follows_history(tokens("ca"), tokens("abcabcab")));
  CHECK_FALSE(follows_history(tokens("a"), tokens("abcabcab")));
  CHECK_FALSE(follows_history({}, tokens("abcabcab")));
}

TEST_CASE("a skipped stretch is a deletion, also where the others have not come past it", "[story]") {
  Story story = tell_story(tokens("cd"), tokens("b"), tokens("abcdabcda"));
  CHECK(story.kind == Story::Kind::kDeletion);
  CHECK(text(story.left_out) == "b");
  CHECK(text(story.next) == "c");
}

TEST_CASE("what nobody does there is an insertion", "[story]") {
  Story story = tell_story(tokens("xbc"), tokens("bcd"), tokens("abcdabcda"));
  CHECK(story.kind == Story::Kind::kInsertion);
  CHECK(text(story.added) == "x");
}

TEST_CASE("the same in another order is a permutation within one phase", "[story]") {
  CHECK(tell_story(tokens("cbd"), tokens("bcd"), {}).kind == Story::Kind::kPermutation);
  CHECK(tell_story(tokens("|b"), tokens("b|"), {}).kind != Story::Kind::kPermutation);
}

TEST_CASE("a forward pass again, instead of the backward pass, leaves out all reductions", "[story]") {
  Story story = tell_story(tokens("ff"), tokens("gR"), tokens("fffgRgRSfffgRgRSfff"));
  CHECK(story.kind == Story::Kind::kDeletion);
  CHECK(text(story.left_out) == "gRgRS");
  CHECK(story.leaves_out_all_reductions);
}

TEST_CASE("a rank that did nothing since is silent", "[story]") {
  CHECK(tell_story({}, tokens("a"), {}).kind == Story::Kind::kSilent);
  CHECK(tell_story({}, {}, {}).kind == Story::Kind::kNone);
}
