#include "core/job/repetition.h"
#include "core/job/story.h"
#include "made.h"

using namespace dshang::job;

namespace {

// Tokens from letters: capital letters reduce, '|' begins a step; each letter is a call of its own size.
Tokens tokens(const std::string& text, Part part = Part::kUnknown) {
  static Call calls[128];
  Tokens all;
  for (char letter : text) {
    Token token;
    token.kind = letter == '|' ? Token::Kind::kStep : Token::Kind::kCall;
    token.key = static_cast<std::uint64_t>(letter);
    token.call = &calls[static_cast<std::size_t>(letter)];
    calls[static_cast<std::size_t>(letter)].count = static_cast<std::uint64_t>(letter);
    token.place = token.line = static_cast<PlaceId>(letter);
    token.reduces = letter >= 'A' && letter <= 'Z';
    token.part = part;
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

TEST_CASE("a loop of gathers that is left for something new is counted", "[repetition]") {
  Story story = tell_story(tokens("X"), tokens("a"), tokens("abcabcabc"));
  REQUIRE(story.repetition);
  CHECK(story.kind == Story::Kind::kDeletion);
  CHECK(text(story.repetition.round) == "abc");
  CHECK(story.repetition.told == 3);
  CHECK(story.repetition.others == 4);
  CHECK(story.repetition.others_inside);
}

TEST_CASE("the suspects may be those that go on", "[repetition]") {
  Story story = tell_story(tokens("abca"), tokens("X"), tokens("abcabc"));
  REQUIRE(story.repetition);
  CHECK(story.kind == Story::Kind::kInsertion);
  CHECK(story.repetition.told == 4);
  CHECK(story.repetition.others == 2);
}

TEST_CASE("a whole training step is no such loop: whoever leaves it makes a call of its own",
          "[repetition]") {
  Story story = tell_story(tokens("x"), tokens("f"), tokens("fgGFSfgGFS"));
  CHECK_FALSE(story.repetition);
  CHECK(story.kind == Story::Kind::kInsertion);
}

TEST_CASE("what resumes behind the new call is an insertion", "[repetition]") {
  Story story = tell_story(tokens("xab"), tokens("abc"), tokens("abcabc"));
  CHECK_FALSE(story.repetition);
  CHECK(text(story.added) == "x");
}

TEST_CASE("micro-batches of which one is missing are counted", "[repetition]") {
  Story story = tell_story(tokens("S"), tokens("f"), tokens("fFfFfFSfFfFfFSfFfF"));
  REQUIRE(story.repetition);
  CHECK(text(story.repetition.round) == "fF");
  CHECK(story.repetition.told == 2);
  CHECK(story.repetition.others == 3);
}

TEST_CASE("one micro-batch more than ever before is counted", "[repetition]") {
  Story story = tell_story(tokens("f"), tokens("S"), tokens("fFfFSfFfFSfFfF"));
  REQUIRE(story.repetition);
  CHECK(story.kind == Story::Kind::kInsertion);
  CHECK(story.repetition.told == 3);
  CHECK(story.repetition.others == 2);
}

TEST_CASE("equal layers, always as many, are no loop", "[repetition]") {
  Story story = tell_story(tokens("R"), tokens("a"), tokens("aaaaRaRaRaRSaaaaRaRaRaRSaaa"));
  CHECK_FALSE(story.repetition);
  CHECK(story.kind == Story::Kind::kDeletion);
}

TEST_CASE("chunks, another number each time, are a loop", "[repetition]") {
  Story story = tell_story(tokens("R"), tokens("a"), tokens("baaRSbaaaRSba"));
  REQUIRE(story.repetition);
  CHECK(text(story.repetition.round) == "a");
  CHECK(story.repetition.told == 1);
}

TEST_CASE("fewer rounds of backward than of forward are told by what is gathered", "[repetition]") {
  Story story = tell_story(tokens("S"), tokens("b"), tokens("abababbBaAbBaA"));
  REQUIRE(story.repetition);
  CHECK(story.forward_before == 6);
  CHECK(story.backward_before == 4);
  // As many of both: the step is complete, and something new begins.
  CHECK_FALSE(tell_story(tokens("S"), tokens("b"), tokens("ababbBaAbBaA")).repetition);
}

TEST_CASE("a longer edit that explains all is better than another order of everything", "[repetition]") {
  Story story = tell_story(tokens("Saabb"), tokens("bSaab"), tokens("aabb"));
  CHECK(story.kind != Story::Kind::kPermutation);
  CHECK(tell_story(tokens("cbde"), tokens("bcde"), {}).kind == Story::Kind::kPermutation);
}

TEST_CASE("history within one run of equal calls blames nobody", "[repetition]") {
  CHECK_FALSE(follows_history(tokens("a"), tokens("baa")));
  CHECK(follows_history(tokens("a"), tokens("abcabc")));
}
