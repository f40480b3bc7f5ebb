// Plain data as a Flight Recorder dump holds it: numbers, texts, lists, dictionaries.  Filled by
// recorder_pickle.h and recorder_json.h.
//
// Texts of a pickle point into the bytes it was read from, which must outlive the tree.
//
// Size: a small multiple of the input.  A container that a pickle refers to several times is there once; it
// may even contain itself, so whoever walks the tree walks it to a fixed depth.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::job {

struct RecorderValue {
  enum class Kind : std::uint8_t { kNone, kFalse, kTrue, kInteger, kReal, kText, kList, kDictionary };
  Kind kind = Kind::kNone;
  std::uint32_t index = 0;  // of a text or a container in its tree
  union {
    std::int64_t integer = 0;
    double real;
  };
};

class RecorderTree {
 public:
  using Kind = RecorderValue::Kind;

  static RecorderValue integer(std::int64_t number);
  static RecorderValue real(double number);
  static RecorderValue of(Kind kind) { return {kind, 0, {}}; }
  RecorderValue text(std::string_view text);        // lent
  RecorderValue own_text(const std::string& text);  // copied
  RecorderValue container(Kind kind);

  // Appends to a list, or key and value in turns to a dictionary.
  void append(const RecorderValue& container, std::span<const RecorderValue> items);

  std::size_t text_count() const { return texts_.size(); }
  std::string_view text_at(std::uint32_t index) const { return texts_[index]; }
  std::size_t container_count() const { return containers_.size(); }
  std::string_view text_of(const RecorderValue& value) const;  // "" for what is none
  // Of a list the items, of a dictionary keys and values in turns; empty for what is neither.
  std::span<const RecorderValue> items(const RecorderValue& value) const;
  // The value of a key; nullptr where it is missing, or `dictionary` is none.
  const RecorderValue* find(const RecorderValue& dictionary, std::string_view key) const;

  RecorderValue root;

 private:
  struct Container {
    std::size_t offset = 0;
    std::size_t count = 0, capacity = 0;
  };
  std::vector<std::string_view> texts_;
  std::deque<std::string> own_;
  std::vector<Container> containers_;
  std::vector<RecorderValue> slots_;
};

}  // namespace dshang::job
