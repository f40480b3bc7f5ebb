#include "core/job/recorder_pickle.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace dshang::job {
namespace {

using Kind = RecorderValue::Kind;

// Opcodes by the names of pickletools.
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kFrame = 0x95,
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  RecorderTree read() {
    while (!stopped_) step();
    return std::move(tree_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("byte " + std::to_string(start_) + " of the pickle: " + what);
  }

  void step();
  void number_or_text(unsigned char opcode);
  void container(unsigned char opcode);
  void memo(unsigned char opcode);

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("it ends there: the file is cut off");
    std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  // Little-endian.
  std::uint64_t number(unsigned bytes) {
    std::string_view taken = take(bytes);
    std::uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  std::int64_t long1() {
    unsigned size = static_cast<unsigned>(number(1));
    if (size > 8) fail("an integer of " + std::to_string(size) + " bytes: only 64 bits are read");
    if (size == 0) return 0;
    std::uint64_t value = number(size);
    unsigned unused = 64 - 8 * size;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

  double real() {
    std::string_view taken = take(8);  // big-endian
    std::uint64_t bits = 0;
    for (char byte : taken) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }

  void push(const RecorderValue& value) { stack_.push_back(value); }

  RecorderValue pop() {
    need(1);
    RecorderValue value = stack_.back();
    stack_.pop_back();
    return value;
  }

  // That many values above the last mark.
  void need(std::size_t count) const {
    std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) fail("a value is missing on the stack");
  }

  void tuple(std::size_t count) {
    need(count);
    RecorderValue made = tree_.container(Kind::kList);
    fill(made, stack_.size() - count);
    push(made);
  }

  std::size_t unmark() {
    if (marks_.empty()) fail("a mark is missing");
    std::size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }

  void fill(const RecorderValue& container, std::size_t from) {
    tree_.append(container, std::span(stack_).subspan(from));
    stack_.resize(from);
  }

  // Adds what stands above `from` to the container below it.
  void add(std::size_t from, Kind kind) {
    std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (from <= floor || stack_[from - 1].kind != kind) fail("something is added to what cannot take it");
    if (kind == Kind::kDictionary && (stack_.size() - from) % 2) fail("a key without a value");
    fill(stack_[from - 1], from);
  }

  // Writers number the slots without gaps.
  void put(std::uint64_t slot) {
    need(1);
    if (slot > memo_.size()) fail("a memo slot out of turn");
    if (slot == memo_.size()) memo_.emplace_back();
    memo_[slot] = stack_.back();
  }

  void get(std::uint64_t slot) {
    if (slot >= memo_.size()) fail("a memo slot that was never filled");
    push(memo_[slot]);
  }

  std::string_view bytes_;
  std::size_t at_ = 0, start_ = 0;
  bool stopped_ = false;
  RecorderTree tree_;
  std::vector<RecorderValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<RecorderValue> memo_;
};

void Reader::number_or_text(unsigned char opcode) {
  switch (opcode) {
    case kBinInt:
      return push(RecorderTree::integer(static_cast<std::int32_t>(number(4))));
    case kBinInt1:
      return push(RecorderTree::integer(static_cast<std::int64_t>(number(1))));
    case kBinInt2:
      return push(RecorderTree::integer(static_cast<std::int64_t>(number(2))));
    case kLong1:
      return push(RecorderTree::integer(long1()));
    case kBinFloat:
      return push(RecorderTree::real(real()));
    case kShortBinUnicode:
      return push(tree_.text(take(number(1))));
    case kBinUnicode:
      return push(tree_.text(take(number(4))));
    default:
      return push(tree_.text(take(number(8))));
  }
}

void Reader::container(unsigned char opcode) {
  switch (opcode) {
    case kEmptyList:
    case kEmptyTuple:
      return push(tree_.container(Kind::kList));
    case kEmptyDict:
      return push(tree_.container(Kind::kDictionary));
    case kTuple1:
      return tuple(1);
    case kTuple2:
      return tuple(2);
    case kTuple3:
      return tuple(3);
    case kTuple: {
      std::size_t from = unmark();
      return tuple(stack_.size() - from);
    }
    case kAppend:
      need(2);
      return add(stack_.size() - 1, Kind::kList);
    case kSetItem:
      need(3);
      return add(stack_.size() - 2, Kind::kDictionary);
    case kAppends:
      return add(unmark(), Kind::kList);
    default:
      return add(unmark(), Kind::kDictionary);
  }
}

void Reader::memo(unsigned char opcode) {
  switch (opcode) {
    case kBinPut:
      return put(number(1));
    case kLongBinPut:
      return put(number(4));
    case kMemoize:
      return put(memo_.size());
    case kBinGet:
      return get(number(1));
    default:
      return get(number(4));
  }
}

void Reader::step() {
  start_ = at_;
  unsigned char opcode = static_cast<unsigned char>(take(1)[0]);
  switch (opcode) {
    case kProto: {
      std::uint64_t protocol = number(1);
      if (protocol < 2 || protocol > 5) fail("protocol " + std::to_string(protocol) + "; 2 to 5 are read");
      return;
    }
    case kFrame:
      number(8);
      return;
    case kMark:
      marks_.push_back(stack_.size());
      return;
    case kPop:
      pop();
      return;
    case kNone:
      return push(RecorderTree::of(Kind::kNone));
    case kNewTrue:
      return push(RecorderTree::of(Kind::kTrue));
    case kNewFalse:
      return push(RecorderTree::of(Kind::kFalse));
    case kStop:
      if (!marks_.empty() || stack_.size() != 1) fail("it ends with more or less than one value");
      tree_.root = pop();
      stopped_ = true;
      return;
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kLong1:
    case kBinFloat:
    case kShortBinUnicode:
    case kBinUnicode:
    case kBinUnicode8:
      return number_or_text(opcode);
    case kEmptyList:
    case kEmptyTuple:
    case kEmptyDict:
    case kTuple:
    case kTuple1:
    case kTuple2:
    case kTuple3:
    case kAppend:
    case kAppends:
    case kSetItem:
    case kSetItems:
      return container(opcode);
    case kBinPut:
    case kLongBinPut:
    case kMemoize:
    case kBinGet:
    case kLongBinGet:
      return memo(opcode);
    default:
      break;
  }
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", opcode);
  fail(std::string("opcode ") + text + " is not one of plain data; nothing else is read, and nothing is run");
}

}  // namespace

bool looks_like_pickle(std::string_view bytes) {
  return bytes.size() > 2 && static_cast<unsigned char>(bytes[0]) == kProto && bytes[1] >= 2 && bytes[1] <= 5;
}

RecorderTree read_pickle(std::string_view bytes) {
  if (!looks_like_pickle(bytes)) throw std::runtime_error("it is no pickle of protocol 2 to 5");
  return Reader(bytes).read();
}

}  // namespace dshang::job
