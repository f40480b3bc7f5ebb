// The reader of Flight Recorder pickles: plain data and nothing else.
#include <stdexcept>
#include <string>

#include "catch.h"
#include "core/job/recorder_pickle.h"
#include "core/job/recorder_write.h"

using namespace dshang::job;
using Kind = RecorderValue::Kind;

namespace {

template <std::size_t N>
std::string bytes(const char (&text)[N]) {
  return std::string(text, N - 1);
}

std::string error_of(const std::string& pickle) {
  try {
    read_pickle(pickle);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what torch writes is read", "[recorder]") {
  PickleWriter writer;
  writer.open_dictionary();
  writer.text("numbers");
  writer.open_list();
  for (std::int64_t number :
       {0l, 255l, 256l, 65535l, 65536l, -1l, 2147483648l, 1758610505880883597l, INT64_MIN}) {
    writer.integer(number);
  }
  writer.close_list();
  writer.text("pair");
  writer.text("0"), writer.text("numbers"), writer.pair();
  writer.text("rest");
  writer.open_list();
  writer.none(), writer.boolean(true), writer.boolean(false);
  writer.close_list();
  std::uint32_t kept = writer.keep();
  writer.text("again"), writer.again(kept);
  writer.close_dictionary();
  std::string pickle = writer.finish();

  RecorderTree tree = read_pickle(pickle);
  REQUIRE(tree.root.kind == Kind::kDictionary);
  const RecorderValue* numbers = tree.find(tree.root, "numbers");
  REQUIRE(numbers);
  REQUIRE(tree.items(*numbers).size() == 9);
  CHECK(tree.items(*numbers)[3].integer == 65535);
  CHECK(tree.items(*numbers)[5].integer == -1);
  CHECK(tree.items(*numbers)[7].integer == 1758610505880883597);
  CHECK(tree.items(*numbers)[8].integer == INT64_MIN);
  const RecorderValue* pair = tree.find(tree.root, "pair");
  REQUIRE(pair);
  CHECK(tree.text_of(tree.items(*pair)[1]) == "numbers");
  const RecorderValue *rest = tree.find(tree.root, "rest"), *again = tree.find(tree.root, "again");
  REQUIRE(rest);
  REQUIRE(again);
  CHECK(rest->index == again->index);
  CHECK(tree.items(*rest)[1].kind == Kind::kTrue);
  CHECK(tree.find(tree.root, "missing") == nullptr);
}

TEST_CASE("what Python writes is read", "[recorder]") {
  // pickle.dumps({"a": [1.5, (), ("b",), (1, 2, 3)], "c": -70000}, protocol=4), FRAME and MEMOIZE included
  std::string pickle = bytes(
      "\x80\x04\x95\x2e\0\0\0\0\0\0\0}\x94(\x8c\x01"
      "a\x94]\x94(G\x3f\xf8\0\0\0\0\0\0)\x8c\x01"
      "b\x94\x85\x94"
      "K\x01K\x02K\x03\x87\x94"
      "e\x8c\x01"
      "c\x94J\x90\xee\xfe\xffu.");
  RecorderTree tree = read_pickle(pickle);
  const RecorderValue* list = tree.find(tree.root, "a");
  REQUIRE(list);
  REQUIRE(tree.items(*list).size() == 4);
  CHECK(tree.items(*list)[0].real == 1.5);
  CHECK(tree.items(tree.items(*list)[1]).empty());
  CHECK(tree.items(tree.items(*list)[3])[2].integer == 3);
  CHECK(tree.find(tree.root, "c")->integer == -70000);
}

TEST_CASE("what would run something is refused", "[recorder]") {
  // pickle.dumps of an object whose __reduce__ calls os.system, and the opcodes that lead to code one by one
  CHECK(
      error_of(bytes("\x80\x02"
                     "cposix\nsystem\nq\x00X\x05\0\0\0touchq\x01\x85q\x02Rq\x03.")) ==
      "byte 2 of the pickle: opcode 0x63 is not one of plain data; nothing else is read, and nothing is run");
  for (const char* opcode :
       {"R", "b", "i", "o", "c", "\x81", "\x92", "\x93", "\x82", "P", "Q", "B", "\x97"}) {
    CHECK(error_of(bytes("\x80\x02") + "]" + opcode + ".").find("nothing is run") != std::string::npos);
  }
}

TEST_CASE("broken pickles are refused with a line", "[recorder]") {
  CHECK(error_of("") == "it is no pickle of protocol 2 to 5");
  CHECK(error_of(bytes("\x80\x01N.")) == "it is no pickle of protocol 2 to 5");
  CHECK(error_of(bytes("\x80\x02X\xff\0\0\0abc")) ==
        "byte 2 of the pickle: it ends there: the file is cut off");
  CHECK(error_of(bytes("\x80\x02N")) == "byte 3 of the pickle: it ends there: the file is cut off");
  CHECK(error_of(bytes("\x80\x02]NN.")) == "byte 5 of the pickle: it ends with more or less than one value");
  CHECK(error_of(bytes("\x80\x02"
                       "a.")) == "byte 2 of the pickle: a value is missing on the stack");
  CHECK(error_of(bytes("\x80\x02NNa.")) == "byte 4 of the pickle: something is added to what cannot take it");
  CHECK(error_of(bytes("\x80\x02(](a.")) == "byte 5 of the pickle: a value is missing on the stack");
  CHECK(error_of(bytes("\x80\x02"
                       "e.")) == "byte 2 of the pickle: a mark is missing");
  CHECK(error_of(bytes("\x80\x02}(Nu.")) == "byte 5 of the pickle: a key without a value");
  CHECK(error_of(bytes("\x80\x02h\x05.")) == "byte 2 of the pickle: a memo slot that was never filled");
  CHECK(error_of(bytes("\x80\x02Nr\xff\xff\xff\x7f.")) == "byte 3 of the pickle: a memo slot out of turn");
  CHECK(error_of(bytes("\x80\x02\x8a\x09"
                       "123456789.")) ==
        "byte 2 of the pickle: an integer of 9 bytes: only 64 bits are read");
}

TEST_CASE("a list may contain itself", "[recorder]") {
  RecorderTree tree =
      read_pickle(bytes("\x80\x02]q\x00(h\x00h\x00h\x00"
                        "e."));
  CHECK(tree.items(tree.root).size() == 3);
  CHECK(tree.items(tree.root)[1].index == tree.root.index);
}

TEST_CASE("a list that is filled piece by piece holds all of them", "[recorder]") {
  std::string pickle = bytes("\x80\x02]");
  for (int i = 0; i < 5000; ++i) pickle += "]NaaNa";
  RecorderTree tree = read_pickle(pickle + ".");
  CHECK(tree.items(tree.root).size() == 10000);
  CHECK(tree.items(tree.root)[9998].kind == Kind::kList);
  CHECK(tree.items(tree.root)[9999].kind == Kind::kNone);
}
