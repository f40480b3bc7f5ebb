#include <functional>
#include <string>

#include "catch.h"
#include "image.h"

using namespace dshang::flight;
using dshang::flight::test::Image;

namespace {

std::string problem_after(const std::function<void(Header&)>& change) {
  Image image;
  change(image.header());
  Reader reader = image.reader();
  CHECK(static_cast<bool>(reader) == (reader.problem() == nullptr));
  return reader.problem() ? reader.problem() : "";
}

SectionInfo& calls_of(Header& header) { return header.sections[static_cast<unsigned>(Section::kCalls)]; }

}  // namespace

TEST_CASE("what is no flight memory is refused with a reason") {
  CHECK(std::string(Reader().problem()) == "no memory");
  CHECK(std::string(Reader(nullptr, 100).problem()) == "shorter than a flight memory's header");
  Image image;
  CHECK(std::string(Reader(image.bytes(), sizeof(Header) - 1).problem()) ==
        "shorter than a flight memory's header");
  CHECK(std::string(Reader(image.bytes(), image.size() - 1).problem()) ==
        "cut off: shorter than its header says");
  CHECK(std::string(Reader(image.bytes() + 4, image.size() - 4).problem()) == "not aligned to 8 bytes");
  CHECK(problem_after([](Header&) {}) == "");
  CHECK(problem_after([](Header& h) { h.magic ^= 1; }) == "not a flight memory");
  CHECK(problem_after([](Header& h) { h.version = kVersion + 1; }) ==
        "flight memory of another version of dshang");
  CHECK(problem_after([](Header& h) { h.header_bytes += 8; }) == "header of an unknown size");
  CHECK(problem_after([](Header& h) { h.total_bytes = UINT64_MAX; }) ==
        "cut off: shorter than its header says");
}

TEST_CASE("a section that does not lie inside is refused") {
  CHECK(problem_after([](Header& h) { calls_of(h).offset = UINT64_MAX - 63; }) == "section beyond the end");
  CHECK(problem_after([](Header& h) { calls_of(h).offset = h.total_bytes; }) == "section beyond the end");
  CHECK(problem_after([](Header& h) { calls_of(h).offset = h.total_bytes - 64; }) ==
        "section beyond the end");
  CHECK(problem_after([](Header& h) { calls_of(h).offset += 8; }) == "section at an impossible place");
  CHECK(problem_after([](Header& h) { calls_of(h).offset = 0; }) == "section at an impossible place");
  CHECK(problem_after([](Header& h) { calls_of(h).entries = 0; }) == "section without entries");
  CHECK(problem_after([](Header& h) { calls_of(h).entries = UINT32_MAX; }) ==
        "section whose size does not fit its entries");
  CHECK(problem_after([](Header& h) { calls_of(h).bytes += 128; }) ==
        "section whose size does not fit its entries");
  CHECK(problem_after([](Header& h) {
          calls_of(h).entries = UINT32_MAX;
          calls_of(h).bytes = std::uint64_t{UINT32_MAX} * sizeof(CallRecord);
        }) == "section beyond the end");
  CHECK(problem_after([](Header& h) { calls_of(h).entry_bytes = 64; }) ==
        "section with entries of an unknown size");
}

TEST_CASE("a smaller ring than today's is read by its own size") {
  Image image;
  SectionInfo& info = calls_of(image.header());
  info.entries = 10;
  info.bytes = 10 * sizeof(CallRecord);
  Reader reader = image.reader();
  REQUIRE(reader);
  CHECK(reader.calls().entries == 10);
  image.header().call_head.store(25);
  CHECK(reader.calls().first() == 15);
}

TEST_CASE("a section table that changes after the check leads nowhere") {
  Image image;
  Reader reader = image.reader();
  image.call(1);
  for (SectionInfo& info : image.header().sections)
    info = {UINT64_MAX - 63, UINT64_MAX, UINT32_MAX, UINT32_MAX};
  Copy<CallRecord> call;
  CHECK(reader.call(0, &call) == SlotState::kComplete);
  image.header().comm_count.store(UINT32_MAX);
  CHECK(reader.comm_count() == kCommEntries);
}

TEST_CASE("strings that lie outside or were changed are gone") {
  Image image;
  Reader reader = image.reader();
  std::uint32_t id = image.writer().string("forward");
  StringEntry& entry = image.section<StringEntry>(Section::kStrings)[id - 1];
  char text[kLongestString];
  std::size_t length = 0;
  REQUIRE(reader.string(id, text, &length) == SlotState::kComplete);
  CHECK(length == 7);
  std::uint32_t offset = entry.offset;
  for (std::uint32_t bad : {kArenaBytes - 6, kArenaBytes, UINT32_MAX}) {
    entry.offset = bad;
    CHECK(reader.string(id, text, &length) == SlotState::kGone);
    CHECK(length == 0);
  }
  entry.offset = offset;
  for (std::uint32_t bad : {1u, 7u, 4098u, UINT32_MAX}) {
    entry.length_plus_one.store(bad);
    CHECK(reader.string(id, text, &length) == SlotState::kGone);
  }
  entry.length_plus_one.store(0);
  CHECK(reader.string(id, text, &length) == SlotState::kUnfinished);
  entry.length_plus_one.store(8);
  image.section<char>(Section::kArena)[offset] = 'F';
  CHECK(reader.string(id, text, &length) == SlotState::kGone);
}

TEST_CASE("a site with more frames than fit is gone") {
  Image image;
  Reader reader = image.reader();
  bool is_new = false;
  std::uint32_t id = image.writer().site(77, &is_new);
  Copy<SiteEntry> entry;
  std::uint32_t frames = 0;
  for (std::uint32_t bad : {kSiteFrames + 1, UINT32_MAX - 1}) {
    image.writer().resolve_site(id, bad);
    CHECK(reader.site(id, &entry, &frames) == SlotState::kGone);
    CHECK(frames == 0);
  }
  image.writer().resolve_site(id, kSiteFrames);
  CHECK(reader.site(id, &entry, &frames) == SlotState::kComplete);
}

TEST_CASE("a host name that fills its field is terminated") {
  Image image;
  std::memset(image.header().host, 'h', sizeof image.header().host);
  char host[sizeof(Header::host) + 1];
  image.reader().host(host);
  CHECK(std::string(host) == std::string(sizeof(Header::host), 'h'));
}
