#include "core/job/recorder_value.h"

#include <algorithm>

namespace dshang::job {

RecorderValue RecorderTree::integer(std::int64_t number) {
  RecorderValue value = of(Kind::kInteger);
  value.integer = number;
  return value;
}

RecorderValue RecorderTree::real(double number) {
  RecorderValue value = of(Kind::kReal);
  value.real = number;
  return value;
}

RecorderValue RecorderTree::text(std::string_view text) {
  texts_.push_back(text);
  return {Kind::kText, static_cast<std::uint32_t>(texts_.size() - 1), {}};
}

RecorderValue RecorderTree::own_text(const std::string& text) {
  own_.push_back(text);
  return this->text(own_.back());
}

RecorderValue RecorderTree::container(Kind kind) {
  containers_.emplace_back();
  return {kind, static_cast<std::uint32_t>(containers_.size() - 1), {}};
}

// A container that has no room left moves to the end: most are filled once, and never move.
void RecorderTree::append(const RecorderValue& container, std::span<const RecorderValue> items) {
  Container& c = containers_[container.index];
  std::size_t count = c.count + items.size();
  if (count > c.capacity) {
    std::size_t capacity = c.count == 0 ? count : std::max(count, 2 * c.capacity);
    std::size_t offset = slots_.size();
    slots_.resize(offset + capacity);
    std::copy_n(slots_.begin() + static_cast<std::ptrdiff_t>(c.offset), c.count,
                slots_.begin() + static_cast<std::ptrdiff_t>(offset));
    c.offset = offset;
    c.capacity = capacity;
  }
  std::copy(items.begin(), items.end(), slots_.begin() + static_cast<std::ptrdiff_t>(c.offset + c.count));
  c.count = count;
}

std::string_view RecorderTree::text_of(const RecorderValue& value) const {
  return value.kind == Kind::kText ? texts_[value.index] : std::string_view();
}

std::span<const RecorderValue> RecorderTree::items(const RecorderValue& value) const {
  if (value.kind != Kind::kList && value.kind != Kind::kDictionary) return {};
  const Container& c = containers_[value.index];
  return {slots_.data() + c.offset, c.count};
}

const RecorderValue* RecorderTree::find(const RecorderValue& dictionary, std::string_view key) const {
  if (dictionary.kind != Kind::kDictionary) return nullptr;
  std::span<const RecorderValue> all = items(dictionary);
  const RecorderValue* found = nullptr;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    if (all[i].kind == Kind::kText && text_of(all[i]) == key) found = &all[i + 1];  // the last one counts
  }
  return found;
}

}  // namespace dshang::job
